//! Installs packages on Debian and Ubuntu.

use std::io::{IsTerminal, stdin};
use std::process::{Command, Stdio};

/// The ways to become root.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Root {
    /// The process is root.
    Already,
    /// sudo asks for no password.
    Sudo,
    /// sudo may ask for a password, and a terminal is attached.
    SudoAsking,
    /// There is no way.
    Never,
}

impl Root {
    fn find() -> Self {
        if succeeds("sh", &["-c", "test \"$(id -u)\" = 0"]) {
            Self::Already
        } else if succeeds("sudo", &["-n", "true"]) {
            Self::Sudo
        } else if stdin().is_terminal() && succeeds("sudo", &["--version"]) {
            Self::SudoAsking
        } else {
            Self::Never
        }
    }

    fn prefix(self) -> &'static [&'static str] {
        match self {
            Self::Already => &[],
            Self::Sudo => &["sudo", "-n"],
            Self::SudoAsking | Self::Never => &["sudo"],
        }
    }
}

/// Installs the packages, or explains how to do it by hand.
pub fn install(packages: &[&str]) -> Result<(), String> {
    if !succeeds("apt-get", &["--version"]) {
        return Err(format!(
            "this machine has no apt-get; please install the equivalents of\n\n    {}\n\n\
             (XTASK_SKIP_SETUP=1 goes on without them)",
            packages.join(" ")
        ));
    }
    let root = Root::find();
    let commands = commands(root, packages);
    let by_hand = commands.iter().map(|command| command.join(" ")).collect::<Vec<_>>().join(" && ");
    if root == Root::Never {
        return Err(format!("no right to install packages; please run\n\n    {by_hand}\n"));
    }
    for words in &commands {
        println!("Running `{}`", words.join(" "));
        let status = Command::new(words[0]).args(&words[1..]).status();
        let status = status.map_err(|error| format!("cannot start `{}`: {error}", words[0]))?;
        if !status.success() {
            return Err(format!("`{}` failed ({status}); please run\n\n    {by_hand}\n", words.join(" ")));
        }
    }
    Ok(())
}

/// The commands, run through `env` because sudo drops variables.
fn commands<'a>(root: Root, packages: &[&'a str]) -> [Vec<&'a str>; 2] {
    let apt_get = [root.prefix(), &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]].concat();
    let update = [&apt_get[..], &["update"]].concat();
    let install = [&apt_get[..], &["install", "-y", "--no-install-recommends"], packages].concat();
    [update, install]
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, commands: `cargo xtask` sets up a fresh machine: it installs missing packages, or names them.
    #[test]
    fn packages_are_installed_without_questions_after_an_update() {
        let [update, install] = commands(Root::Already, &["g++", "libvulkan1"]);
        assert_eq!(update.join(" "), "env DEBIAN_FRONTEND=noninteractive apt-get update");
        assert_eq!(
            install.join(" "),
            "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ libvulkan1"
        );
    }

    #[test]
    fn users_other_than_root_use_sudo() {
        let first_words = |root, count| commands(root, &["g++"])[1][..count].join(" ");
        assert_eq!(first_words(Root::Sudo, 3), "sudo -n env");
        assert_eq!(first_words(Root::SudoAsking, 2), "sudo env");
        // The commands printed for the user to run by hand.
        assert_eq!(first_words(Root::Never, 2), "sudo env");
    }
}
