//! Completions and the manual: for each verb that there is, and in the words of the help.

use std::process::{Command, Output};

use clap::CommandFactory as _;
use gpuledger::cli::Cli;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpuledger")).args(args).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

fn verbs() -> Vec<String> {
    Cli::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
}

#[test]
fn every_shell_completes_every_verb() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&run(&["completions", shell]));
        for verb in verbs() {
            assert!(script.contains(&verb), "{shell} does not know {verb}");
        }
        assert!(script.contains("min-gpu-memory"), "{shell} knows no option of a verb");
    }
    assert_eq!(run(&["completions", "dos"]).status.code(), Some(2));
}

#[test]
fn bash_completes_what_is_begun() {
    let script = text(&run(&["completions", "bash"]));
    let ask = "COMP_WORDS=(gpuledger che); COMP_CWORD=1; _gpuledger gpuledger che gpuledger; echo \"${COMPREPLY[*]}\"";
    let Ok(shell) = Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).output() else {
        eprintln!("skipped: there is no bash here");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&shell.stdout).trim(), "cheapest", "{}", String::from_utf8_lossy(&shell.stderr));
}

#[test]
fn the_manual_has_a_page_for_each_verb_and_the_first_names_them_all() {
    let first = text(&run(&["man"]));
    assert!(first.contains(".TH gpuledger 1"), "{first}");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let into = folder.path().join("man1");
    let paths = text(&run(&["man", &into.display().to_string()]));
    for verb in verbs() {
        assert!(first.contains(&format!("gpuledger\\-{verb}(1)")), "{verb} is not on the first page");
        let page = into.join(format!("gpuledger-{verb}.1"));
        let page = if page.is_file() { page } else { panic!("{verb} has no page among\n{paths}") };
        assert!(paths.contains(&page.display().to_string()), "{paths}");
    }
    let page = std::fs::read_to_string(into.join("gpuledger-cheapest.1")).expect("there is a page");
    for words in ["min\\-gpu\\-memory", "currency", "dense FP16 PFLOPS"] {
        assert!(page.contains(words), "no `{words}` in\n{page}");
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("there is room for a file");
    assert_eq!(run(&["man", &file.display().to_string()]).status.code(), Some(11));
}
