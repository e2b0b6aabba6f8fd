//! The requirements, their purposes, and their Debian or Ubuntu packages.

use super::machine::Machine;

/// A requirement of the build or the demo.
pub struct Need {
    pub purpose: &'static str,
    /// The Debian and Ubuntu package.
    pub package: &'static str,
    /// What needs it.
    pub of: Of,
    found: fn(&Machine) -> bool,
}

/// What needs a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The build and the demo.
    All,
    /// A window. Without a display, the demo renders off screen.
    Window,
    /// A world in a database.
    Database,
    /// The test that works in a window with a mouse and a keyboard.
    Screen,
}

const NEEDS: &[Need] = &[
    Need {
        purpose: "a C++ compiler, for RocksDB",
        package: "g++",
        of: Of::All,
        found: |machine| machine.is_set("CXX") || machine.has_program("c++"),
    },
    Need {
        purpose: "libclang and its headers, for the bindings to RocksDB",
        package: "libclang-dev",
        of: Of::All,
        found: Machine::has_libclang,
    },
    Need {
        purpose: "the Vulkan loader, for rendering",
        package: "libvulkan1",
        of: Of::All,
        found: |machine| machine.has_library("libvulkan.so.1"),
    },
    Need {
        purpose: "a Vulkan driver, for rendering",
        package: "mesa-vulkan-drivers",
        of: Of::All,
        found: Machine::has_vulkan_driver,
    },
    Need {
        purpose: "Python, for the test of docs/world-format.md",
        package: "python3",
        of: Of::All,
        found: |machine| machine.has_program("python3"),
    },
    Need {
        // Its package also brings `openssl`, which the tests use.
        purpose: "PostgreSQL, for worlds in a database",
        package: "postgresql",
        of: Of::Database,
        found: Machine::has_postgres,
    },
    screen("a screen without hardware", "xvfb", |machine| machine.has_program("Xvfb")),
    screen("a window manager, without which no window has the keyboard", "openbox", |machine| {
        machine.has_program("openbox")
    }),
    screen("clicks and keys", "xdotool", |machine| machine.has_program("xdotool")),
    window("libX11.so.6", "libx11-6", |machine| machine.has_library("libX11.so.6")),
    window("libX11-xcb.so.1", "libx11-xcb1", |machine| machine.has_library("libX11-xcb.so.1")),
    window("libXcursor.so.1", "libxcursor1", |machine| machine.has_library("libXcursor.so.1")),
    window("libXi.so.6", "libxi6", |machine| machine.has_library("libXi.so.6")),
    window("libXrandr.so.2", "libxrandr2", |machine| machine.has_library("libXrandr.so.2")),
    window("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", |machine| machine.has_library("libxkbcommon-x11.so.0")),
];

const fn window(purpose: &'static str, package: &'static str, found: fn(&Machine) -> bool) -> Need {
    Need { purpose, package, of: Of::Window, found }
}

const fn screen(purpose: &'static str, package: &'static str, found: fn(&Machine) -> bool) -> Need {
    Need { purpose, package, of: Of::Screen, found }
}

/// The missing requirements of this machine, with those of some purposes. With a display, a window is one of them.
pub fn missing(machine: &Machine, also: &[Of]) -> Vec<&'static Need> {
    let display = machine.is_set("DISPLAY") || machine.is_set("WAYLAND_DISPLAY");
    let is_wanted = |of: Of| of == Of::All || also.contains(&of) || (of == Of::Window && display);
    NEEDS.iter().filter(|need| is_wanted(need.of) && !(need.found)(machine)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::machine::tests::Tree;

    const ALWAYS: [&str; 5] = ["g++", "libclang-dev", "libvulkan1", "mesa-vulkan-drivers", "python3"];
    const WINDOW: [&str; 6] = ["libx11-6", "libx11-xcb1", "libxcursor1", "libxi6", "libxrandr2", "libxkbcommon-x11-0"];

    fn wanted(tree: &Tree, variables: &[(&str, &str)]) -> Vec<&'static str> {
        crate::setup::packages(&missing(&tree.machine(variables), &[]))
    }

    /// Promise, features: `cargo xtask` installs a C++ compiler and `libclang`.
    #[test]
    fn a_bare_machine_wants_everything_but_a_window() {
        assert_eq!(wanted(&Tree::new(&[]), &[]), ALWAYS);
    }

    #[test]
    fn a_database_is_wanted_only_where_it_is_used() {
        let packages = |tree: &Tree| crate::setup::packages(&missing(&tree.machine(&[]), &[Of::Database]));
        assert_eq!(packages(&Tree::new(&[])), [&ALWAYS[..], &["postgresql"]].concat());
        assert_eq!(packages(&Tree::new(&["usr/lib/postgresql/15/bin/initdb"])), ALWAYS);
    }

    #[test]
    fn a_display_wants_a_window() {
        for variable in ["DISPLAY", "WAYLAND_DISPLAY"] {
            assert_eq!(wanted(&Tree::new(&[]), &[(variable, ":0")]), [&ALWAYS[..], &WINDOW].concat());
        }
        assert_eq!(wanted(&Tree::new(&[]), &[("DISPLAY", "")]), ALWAYS);
    }

    #[test]
    fn tests_want_a_screen_and_a_window() {
        let also = [Of::Window, Of::Screen];
        let packages = |tree: &Tree| crate::setup::packages(&missing(&tree.machine(&[("PATH", "/usr/bin")]), &also));
        let screen = ["xvfb", "openbox", "xdotool"];
        assert_eq!(packages(&Tree::new(&[])), [&ALWAYS[..], &screen, &WINDOW].concat());
        let tree = Tree::new(&["usr/bin/Xvfb", "usr/bin/openbox", "usr/bin/xdotool"]);
        assert_eq!(packages(&tree), [&ALWAYS[..], &WINDOW].concat());
    }

    /// Promise, commands: `cargo xtask` sets up a fresh machine: it installs missing packages, or names them.
    #[test]
    fn only_missing_packages_are_installed() {
        let tree = Tree::new(&[
            "usr/bin/c++",
            "usr/bin/python3",
            "usr/lib/x86_64-linux-gnu/libvulkan.so.1",
            "usr/lib/x86_64-linux-gnu/libXi.so.6",
            "usr/lib/x86_64-linux-gnu/libX11.so.6",
        ]);
        assert_eq!(wanted(&tree, &[("PATH", "/usr/bin")]), ["libclang-dev", "mesa-vulkan-drivers"]);
        assert_eq!(
            wanted(&tree, &[("PATH", "/usr/bin"), ("DISPLAY", ":1")]),
            ["libclang-dev", "mesa-vulkan-drivers", "libx11-xcb1", "libxcursor1", "libxrandr2", "libxkbcommon-x11-0"]
        );
    }

    #[test]
    fn a_complete_machine_wants_nothing() {
        let tree = Tree::new(&[
            "usr/bin/c++",
            "usr/bin/python3",
            "usr/lib/llvm-14/lib/libclang.so.1",
            "usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h",
            "usr/lib/aarch64-linux-gnu/libvulkan.so.1",
            "usr/share/vulkan/icd.d/lvp_icd.aarch64.json",
        ]);
        assert_eq!(wanted(&tree, &[("PATH", "/usr/local/bin:/usr/bin")]), [""; 0]);
    }
}
