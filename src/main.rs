//! Arguments in, exit code out. The only place that prints an error.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use gpuledger::cli::Cli;
use gpuledger::exit::Exit;
use gpuledger::harmless;
use gpuledger::log::{self, LogForm};
use gpuledger::print::Data;
use gpuledger::report::{self, Failed};
use miette::Diagnostic;

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::choose(cli.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Failed::new(Exit::Bug, "start the runtime", &error)),
    };
    let done = runtime.block_on(report::run(cli));
    // A night that was ended because it took too long may still compute; nobody waits for it.
    runtime.shutdown_background();
    match done {
        Ok(said) => {
            match &said.talk {
                Some(talk) if log::form() == LogForm::Json => log::said(talk),
                Some(talk) => eprint!("{}", harmless::lines(talk)),
                None => {}
            }
            if matches!(said.data, Data::Bytes(_)) && std::io::stdout().is_terminal() {
                return fail(&Failed::of("show bytes on a terminal").with_help("write them into a file: `> FILE`"));
            }
            // A reader that has seen enough closes the pipe; that is no fault.
            let _ = std::io::stdout().write_all(said.data.bytes());
            said.exit.into()
        }
        Err(failed) => fail(&failed),
    }
}

fn fail(failed: &Failed) -> ExitCode {
    if log::form() == LogForm::Json {
        log::failed(failed.exit, &failed.to_string(), failed.help().map(|help| help.to_string()).as_deref());
        return failed.exit.into();
    }
    let mut text = String::new();
    let handler = miette::GraphicalReportHandler::new().with_links(false);
    match handler.render_report(&mut text, failed as &dyn Diagnostic) {
        Ok(()) => eprint!("{text}"),
        Err(_) => eprintln!("{failed}"),
    }
    failed.exit.into()
}
