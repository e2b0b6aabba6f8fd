//! Detects installed software by looking for files, without running anything.

use std::collections::HashMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// The library directories of Linux distributions, besides LD_LIBRARY_PATH.
const LIBRARY_DIRECTORIES: &[&str] =
    &["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

/// The directories in which the Vulkan loader looks for drivers, besides the home directory.
const DRIVER_DIRECTORIES: &[&str] =
    &["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d"];

/// A file system and an environment, so that tests can simulate machines.
pub struct Machine {
    root: PathBuf,
    variables: HashMap<OsString, OsString>,
}

impl Machine {
    /// The current machine.
    pub fn this() -> Self {
        Self { root: "/".into(), variables: env::vars_os().collect() }
    }

    /// Returns `true` if the environment variable has a value.
    pub fn is_set(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns `true` if a program of this name is on PATH.
    pub fn has_program(&self, name: &str) -> bool {
        self.program(name).is_some()
    }

    /// Returns `true` if the dynamic linker would find a library of this file name.
    pub fn has_library(&self, name: &str) -> bool {
        let mut directories = self.paths("LD_LIBRARY_PATH");
        directories.extend(LIBRARY_DIRECTORIES.iter().map(PathBuf::from));
        directories.iter().any(|directory| self.place(directory).join(name).exists())
    }

    /// Returns `true` if bindgen would find libclang, and libclang its headers.
    pub fn has_libclang(&self) -> bool {
        // LIBCLANG_PATH may also name the library itself. Its user is responsible for the headers.
        if let Some(path) = self.value("LIBCLANG_PATH") {
            let path = self.place(Path::new(path));
            return path.file_name().is_some_and(is_libclang) && path.is_file() || holds(&path, is_libclang);
        }
        let mut directories: Vec<PathBuf> =
            LIBRARY_DIRECTORIES.iter().map(|path| self.place(Path::new(path))).collect();
        let llvm = entries(&self.place(Path::new("/usr/lib")));
        directories.extend(llvm.iter().filter(|path| name_of(path).starts_with("llvm-")).map(|path| path.join("lib")));
        // Follows Debian's link from /usr/bin to the actual installation.
        let configuration = self.program("llvm-config").and_then(|program| program.canonicalize().ok());
        directories.extend(configuration.iter().filter_map(|path| Some(path.parent()?.parent()?.join("lib"))));

        let library = directories.iter().any(|directory| holds(directory, is_libclang));
        // The library alone may be a dependency of other packages. Then bindgen fails because stddef.h is missing.
        let headers = directories.iter().flat_map(|directory| entries(&directory.join("clang")));
        library && headers.into_iter().any(|version| version.join("include/stddef.h").exists())
    }

    /// Returns `true` if the Vulkan loader would find a driver.
    pub fn has_vulkan_driver(&self) -> bool {
        if self.is_set("VK_DRIVER_FILES") || self.is_set("VK_ICD_FILENAMES") {
            return true;
        }
        let mut directories: Vec<PathBuf> = DRIVER_DIRECTORIES.iter().map(PathBuf::from).collect();
        directories.extend(self.value("HOME").map(|home| Path::new(home).join(".local/share/vulkan/icd.d")));
        directories
            .iter()
            .any(|directory| holds(&self.place(directory), |name| Path::new(name).extension() == Some("json".as_ref())))
    }

    /// Returns `true` if the programs of a PostgreSQL server are installed.
    pub fn has_postgres(&self) -> bool {
        let packaged = entries(&self.place(Path::new("/usr/lib/postgresql")));
        self.has_program("initdb") || packaged.iter().any(|version| version.join("bin/initdb").is_file())
    }

    fn value(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    fn paths(&self, variable: &str) -> Vec<PathBuf> {
        self.value(variable).map(|value| env::split_paths(value).collect()).unwrap_or_default()
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        self.paths("PATH").iter().map(|directory| self.place(directory).join(name)).find(|program| program.is_file())
    }

    /// The path below this machine's root.
    fn place(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Returns `true` for libclang, but not for `libclang-cpp`, which Mesa's OpenCL installs.
fn is_libclang(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let Some((stem, _)) = name.split_once(".so") else { return false };
    stem == "libclang"
        || stem.strip_prefix("libclang-").is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn holds(directory: &Path, is_wanted: impl Fn(&OsStr) -> bool) -> bool {
    entries(directory).iter().any(|path| path.exists() && path.file_name().is_some_and(&is_wanted))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::process;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A directory with empty files that simulates the root of a machine. It is removed on drop.
    pub struct Tree(PathBuf);

    impl Tree {
        pub fn new(files: &[&str]) -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let root = env::temp_dir().join(format!("xtask-machine-{}-{number}", process::id()));
            fs::create_dir_all(&root).unwrap();
            for file in files {
                let path = root.join(file);
                assert!(path.starts_with(&root), "{file} is a file of this machine");
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Self(root)
        }

        pub fn machine(&self, variables: &[(&str, &str)]) -> Machine {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
            Machine { root: self.0.clone(), variables }
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn libclang_is_not_libclang_cpp() {
        for name in ["libclang.so", "libclang.so.1", "libclang-14.so", "libclang-14.so.14.0.6"] {
            assert!(is_libclang(name.as_ref()), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclang.a", "libclangAST.a", "liblldb.so"] {
            assert!(!is_libclang(name.as_ref()), "{name}");
        }
    }

    /// Promise, features: `cargo xtask` installs a C++ compiler and `libclang`.
    #[test]
    fn libclang_without_its_headers_is_not_enough() {
        let library = "usr/lib/x86_64-linux-gnu/libclang-14.so.1";
        assert!(!Tree::new(&[library]).machine(&[]).has_libclang());
        let headers = "usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h";
        assert!(!Tree::new(&[headers]).machine(&[]).has_libclang());
        assert!(Tree::new(&[library, headers]).machine(&[]).has_libclang());
        assert!(
            Tree::new(&["usr/lib64/libclang.so.20.1", "usr/lib/clang/20/include/stddef.h"]).machine(&[]).has_libclang()
        );
    }

    #[test]
    fn libclang_is_where_the_user_says() {
        let tree = Tree::new(&["opt/llvm/lib/libclang.so", "opt/empty/readme"]);
        assert!(tree.machine(&[("LIBCLANG_PATH", "/opt/llvm/lib")]).has_libclang());
        assert!(tree.machine(&[("LIBCLANG_PATH", "/opt/llvm/lib/libclang.so")]).has_libclang());
        assert!(!tree.machine(&[("LIBCLANG_PATH", "/opt/empty")]).has_libclang());
        assert!(!tree.machine(&[]).has_libclang());
    }

    #[test]
    fn libclang_is_found_through_llvm_config() {
        let tree = Tree::new(&[
            "opt/llvm/bin/llvm-config",
            "opt/llvm/lib/libclang.so",
            "opt/llvm/lib/clang/20/include/stddef.h",
        ]);
        assert!(tree.machine(&[("PATH", "/usr/bin:/opt/llvm/bin")]).has_libclang());
        assert!(!tree.machine(&[("PATH", "/usr/bin")]).has_libclang());
    }

    #[test]
    fn a_driver_is_a_json_file_or_the_users_word() {
        assert!(!Tree::new(&["usr/share/vulkan/icd.d/README"]).machine(&[]).has_vulkan_driver());
        assert!(Tree::new(&["etc/vulkan/icd.d/nvidia_icd.json"]).machine(&[]).has_vulkan_driver());
        let at_home = Tree::new(&["home/ada/.local/share/vulkan/icd.d/own.json"]);
        assert!(at_home.machine(&[("HOME", "/home/ada")]).has_vulkan_driver());
        let bare = Tree::new(&[]);
        assert!(bare.machine(&[("VK_DRIVER_FILES", "/opt/own.json")]).has_vulkan_driver());
        assert!(bare.machine(&[("VK_ICD_FILENAMES", "/opt/own.json")]).has_vulkan_driver());
        assert!(!bare.machine(&[("VK_ICD_FILENAMES", "")]).has_vulkan_driver());
    }

    #[test]
    fn libraries_are_also_found_in_ld_library_path() {
        let tree = Tree::new(&["opt/vulkan/libvulkan.so.1"]);
        assert!(tree.machine(&[("LD_LIBRARY_PATH", "/none:/opt/vulkan")]).has_library("libvulkan.so.1"));
        assert!(!tree.machine(&[]).has_library("libvulkan.so.1"));
    }
}
