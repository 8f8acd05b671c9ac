//! Compiles the kernels of ../cmake/deuteron.toml: what is stale, each time that a file changes which they were read from.

use std::{env, fs, path::PathBuf, process::Command};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let deuteron = env::var("DEUTERON").unwrap_or("deuteron".into());
    let targets = env::var("DEUTERON_TARGETS").unwrap_or("cpu".into());
    let depfile = out.join("layers.d");
    let mut build = Command::new(deuteron);
    build.args(["build", "layers", "-f", "../cmake/deuteron.toml"]).arg("-o").arg(&out).arg("--depfile").arg(&depfile);
    for target in targets.split_whitespace() {
        build.args(["-t", target]);
    }
    assert!(build.status().expect("the command `deuteron` runs").success());

    println!("cargo::rustc-link-search=native={}", out.join("layers").display());
    println!("cargo::rustc-link-lib=static=layers");
    println!("cargo::rerun-if-env-changed=DEUTERON_TARGETS");
    let rules = fs::read_to_string(&depfile).unwrap().replace("\\\n", " ");
    let (_, read) = rules.lines().next().unwrap().split_once(": ").unwrap(); // the others say that a file may be gone
    for path in read.replace("\\ ", "\0").split_whitespace() {
        println!("cargo::rerun-if-changed={}", path.replace('\0', " ")); // Make's way to write a space
    }
}
