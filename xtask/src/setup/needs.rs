//! The requirements, their purposes, and their Debian or Ubuntu packages.

use super::machine::Machine;

/// A requirement of the build or the demo.
pub struct Need {
    pub purpose: &'static str,
    /// The Debian and Ubuntu package.
    pub package: &'static str,
    /// `true` if it is needed only for a window. Without a display, the demo and the tests render off screen.
    window: bool,
    found: fn(&Machine) -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        purpose: "a C++ compiler, for RocksDB",
        package: "g++",
        window: false,
        found: |machine| machine.is_set("CXX") || machine.has_program("c++"),
    },
    Need {
        purpose: "libclang and its headers, for the bindings to RocksDB",
        package: "libclang-dev",
        window: false,
        found: Machine::has_libclang,
    },
    Need {
        purpose: "the Vulkan loader, for rendering",
        package: "libvulkan1",
        window: false,
        found: |machine| machine.has_library("libvulkan.so.1"),
    },
    Need {
        purpose: "a Vulkan driver, for rendering",
        package: "mesa-vulkan-drivers",
        window: false,
        found: Machine::has_vulkan_driver,
    },
    Need {
        purpose: "Python, for the test of docs/world-format.md",
        package: "python3",
        window: false,
        found: |machine| machine.has_program("python3"),
    },
    window("libX11.so.6", "libx11-6", |machine| machine.has_library("libX11.so.6")),
    window("libX11-xcb.so.1", "libx11-xcb1", |machine| machine.has_library("libX11-xcb.so.1")),
    window("libXcursor.so.1", "libxcursor1", |machine| machine.has_library("libXcursor.so.1")),
    window("libXi.so.6", "libxi6", |machine| machine.has_library("libXi.so.6")),
    window("libXrandr.so.2", "libxrandr2", |machine| machine.has_library("libXrandr.so.2")),
    window("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", |machine| machine.has_library("libxkbcommon-x11.so.0")),
];

const fn window(purpose: &'static str, package: &'static str, found: fn(&Machine) -> bool) -> Need {
    Need { purpose, package, window: true, found }
}

/// For worlds in a database. Its package also brings `openssl`, which the tests use.
const DATABASE: Need = Need {
    purpose: "PostgreSQL, for worlds in a database",
    package: "postgresql",
    window: false,
    found: Machine::has_postgres,
};

/// The missing requirements of this machine, with those of a database if `database` is `true`.
pub fn missing(machine: &Machine, database: bool) -> Vec<&'static Need> {
    let display = machine.is_set("DISPLAY") || machine.is_set("WAYLAND_DISPLAY");
    let needs = NEEDS.iter().filter(|need| display || !need.window).chain(database.then_some(&DATABASE));
    needs.filter(|need| !(need.found)(machine)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::machine::tests::Tree;

    const ALWAYS: [&str; 5] = ["g++", "libclang-dev", "libvulkan1", "mesa-vulkan-drivers", "python3"];
    const WINDOW: [&str; 6] = ["libx11-6", "libx11-xcb1", "libxcursor1", "libxi6", "libxrandr2", "libxkbcommon-x11-0"];

    fn wanted(tree: &Tree, variables: &[(&str, &str)]) -> Vec<&'static str> {
        crate::setup::packages(&missing(&tree.machine(variables), false))
    }

    /// Promise, features: `cargo xtask` installs a C++ compiler and `libclang`.
    #[test]
    fn a_bare_machine_wants_everything_but_a_window() {
        assert_eq!(wanted(&Tree::new(&[]), &[]), ALWAYS);
    }

    #[test]
    fn a_database_is_wanted_only_where_it_is_used() {
        let packages = |tree: &Tree| crate::setup::packages(&missing(&tree.machine(&[]), true));
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
