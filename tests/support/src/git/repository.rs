//! A repository on disk.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A bare repository, written with git's own commands.
pub struct Repository {
    path: PathBuf,
}

impl Repository {
    /// An empty one.
    ///
    /// # Panics
    /// If git fails.
    pub fn create(path: &Path) -> Self {
        let repository = Self { path: path.to_owned() };
        fs::create_dir_all(path).expect("a directory");
        repository.git(&["init", "--bare", "--quiet", "--initial-branch=main", "."], b"");
        repository.git(&["config", "http.receivepack", "false"], b"");
        repository
    }

    /// Commits exactly these files to a branch, each a mode (`100644`, `120000` for a link, `160000` for a submodule), a path and its
    /// content; the content of a submodule is a commit. Returns the commit.
    ///
    /// # Panics
    /// If git fails.
    pub fn commit(&self, branch: &str, files: &[(&str, &str, &[u8])]) -> String {
        self.git(&["read-tree", "--empty"], b"");
        for (mode, path, content) in files {
            let object = match *mode {
                "160000" => String::from_utf8_lossy(content).into_owned(),
                _ => self.git(&["hash-object", "-w", "--stdin"], content),
            };
            self.git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{object},{path}")], b"");
        }
        self.commit_index(branch)
    }

    /// Commits exactly the files of a directory, below `prefix` in the repository, to a branch. Returns the commit.
    ///
    /// # Panics
    /// If git fails.
    pub fn commit_directory(&self, branch: &str, prefix: &str, directory: &Path) -> String {
        let work_tree = format!("--work-tree={}", directory.display());
        self.git(&["read-tree", "--empty"], b"");
        self.git(&[&work_tree, "add", "--force", "--all", "."], b"");
        let tree = self.git(&["write-tree"], b"");
        self.git(&["read-tree", "--empty"], b"");
        self.git(&[&work_tree, "read-tree", &format!("--prefix={prefix}/"), &tree], b"");
        self.commit_index(branch)
    }

    fn commit_index(&self, branch: &str) -> String {
        let tree = self.git(&["write-tree"], b"");
        let parent = self.try_git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")], b"");
        let mut arguments = vec!["commit-tree", &tree, "-m", "a change"];
        if let Some(parent) = &parent {
            arguments.extend(["-p", parent]);
        }
        let commit = self.git(&arguments, b"");
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &commit], b"");
        commit
    }

    /// Lets the server send commits without their files (`uploadpack.allowFilter`), as the large hosts do.
    ///
    /// # Panics
    /// If git fails.
    pub fn allow_filter(&self) {
        self.git(&["config", "uploadpack.allowFilter", "true"], b"");
    }

    /// An annotated tag.
    ///
    /// # Panics
    /// If git fails.
    pub fn tag(&self, name: &str, commit: &str) {
        self.git(&["tag", "--annotate", "--message", "a version", name, commit], b"");
    }

    /// Runs git in the repository, and returns what it prints.
    ///
    /// # Panics
    /// If git fails.
    pub fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        self.try_git(arguments, input).unwrap_or_else(|| panic!("git {arguments:?} failed"))
    }

    fn try_git(&self, arguments: &[&str], input: &[u8]) -> Option<String> {
        let mut git = command("git", &self.path);
        let mut child = git.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git starts");
        child.stdin.take().expect("standard input").write_all(input).expect("git reads");
        let output = child.wait_with_output().expect("git ends");
        let text = || String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then(text)
    }
}

/// A program without the settings of this machine and its user.
pub(crate) fn command(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "tester").env(format!("GIT_{role}_EMAIL"), "tester@example.com");
        command.env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
    }
    command
}
