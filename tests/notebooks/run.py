"""Executes the notebooks of `output/notebooks` and holds what they worked out against the program's own answers.

Run with `requirements.txt` installed. `GPULEDGER_BIN` names the program; without it, `target/debug/gpuledger`. Words on the command
line name the notebooks to run; without any, all. The notebooks only read files: whatever is compared is compared here.
"""

import csv
import datetime as dt
import io
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checks import HOUSE, check, program, same, summed_up

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HOUSE / "output/notebooks"
# Histories that lie beside the checkout where there are any; the first nights of one are enough for a trend.
HISTORIES = HOUSE / "../shared/data/history"
NIGHTS_OF_A_HISTORY = 7
# Longest time for one cell, which is a bound and no wish.
CELL_SECONDS_MAX = 240
QUIET = {"DAFT_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "1", "DAFT_PROGRESS_BAR": "0", "RAY_USAGE_STATS_ENABLED": "0"}
QUIET |= {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "JUPYTER_PREFER_ENV_PATH": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
GPU, OTHER_GPU = "H100", "A100"

# ---------------------------------------------------------------------------------------------------------------------------
# The dataset, and what the program says of it.


def rows(*arguments):
    return json.loads(program(*arguments, "--format", "json"))


def pages(folder, verda, with_vultr):
    """Pages as a night has them: those of recordings, one of them with other rows."""
    shutil.rmtree(folder, ignore_errors=True)
    for provider, files in (("ecb", ["eurofxref-daily.xml"]), ("verda", []), ("vultr", ["plans.json", "plans-metal.json"])):
        if provider == "vultr" and not with_vultr:
            continue
        recording = max((HOUSE / "scrapers" / provider / "fixtures").glob("2026-*"))
        (folder / provider).mkdir(parents=True)
        for file in files:
            shutil.copy(recording / file, folder / provider)
    (folder / "verda/instance-types.json").write_text(json.dumps(verda))


def datasets(root, typed, scratch):
    """Of typed recordings one night. And more after it: two nights of one day with changed pages, and imported nights around them."""
    program("collect", "--recorded", "--output", typed)
    shutil.copytree(typed, root)
    recording = max((HOUSE / "scrapers/verda/fixtures").glob("2026-*"))
    verda = json.loads((recording / "instance-types.json").read_text())
    h100 = next(row for row in verda if row["instance_type"].startswith("1H100"))
    cards = [row for row in verda if row["gpu"]["number_of_gpus"] and row is not h100]
    # A day is left out between the first night and these. The first lacks a machine that the second has, and the other way round.
    pages(scratch / "pages", [row for row in verda if row is not cards[0]], with_vultr=True)
    given = ["--providers", "ecb,verda,vultr", "--from", scratch / "pages", "--output", root]
    program("collect", *given, "--at", "2026-11-01T15:00:00Z", exits=(0, 10))
    h100["price_per_hour"] = f"{float(h100['price_per_hour']) - 0.1:.2f}"
    pages(scratch / "pages", [row for row in verda if row is not cards[1]], with_vultr=False)
    program("collect", *given, "--at", "2026-11-01T20:00:00Z", exits=(0, 10))
    program("import", "--mapping", HERE / "history.toml", HERE / "history.csv", "--output", root, exits=(0, 10))
    files = sorted((HISTORIES / "gpurentalprices").glob("*.json.gz"))[:NIGHTS_OF_A_HISTORY]
    if files:
        program("import", "--form", "gpurentalprices", *files, "--output", root, exits=(0, 10))
    else:
        print("a tracker's history: skipped: it is not beside this checkout", flush=True)


# ---------------------------------------------------------------------------------------------------------------------------
# Notebooks.

# What a notebook leaves for this file, in plain words of Python. Names that it does not have are none of its answers.
TELL = '''
def _told(table):
    if table is None:
        return None
    for form in ("to_dicts", "to_pylist"):
        if hasattr(table, form):
            return getattr(table, form)()
    if hasattr(table, "to_arrow_table"):
        return table.to_arrow_table().to_pylist()
    return [{key: None if value != value else value for key, value in row.items()} for row in table.to_dict("records")]

def _lines(axes):
    return [[(str(day)[:10], None if usd != usd else float(usd)) for day, usd in zip(line.get_xdata(), line.get_ydata())] for line in axes.lines]

import json as _json
with open(_PLACE, "w") as _file:
    _names = {name: _told(globals().get(name)) for name in ("cheapest", "trend", "changes", "made_of", "read_by")}
    _names |= {"latest": globals().get("latest_id"), "lines": _lines(axes), "title": axes.get_title()}
    _json.dump(_names, _file, default=str)
'''


def run_notebook(path, root, scratch, name, gpu=GPU, folder=NOTEBOOKS):
    """Executes a notebook in a folder. Gives what it worked out, or nothing where it failed. Without a dataset it finds its own."""
    notebook = nbformat.read(path, as_version=4)
    settings = next(cell for cell in notebook.cells if cell.cell_type == "code")
    check(f"{name}: its settings name the GPU", f'GPU = "{GPU}"' in settings.source, settings.source)
    settings.source = settings.source.replace(f'GPU = "{GPU}"', f'GPU = "{gpu}"')
    told = scratch / "told.json"
    told.unlink(missing_ok=True)
    notebook.cells.append(nbformat.v4.new_code_cell(f"_PLACE = {str(told)!r}\n{TELL}"))
    os.environ.pop("GPULEDGER_OUTPUT", None)
    if root is not None:
        os.environ["GPULEDGER_OUTPUT"] = str(root)
    started = time.monotonic()
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS_MAX,
        startup_timeout=120,
        resources={"metadata": {"path": str(folder)}},
        allow_errors=True,
        extra_arguments=["--IPKernelApp.log_level=40"],
    )
    try:
        client.execute()
    except Exception as error:  # a kernel that died or a cell out of time must not hide the other notebooks
        check(f"{name} runs", False, f"{type(error).__name__}: {error}")
        return None
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    errors = ["\n".join(output["traceback"]) for output in outputs if output["output_type"] == "error"]
    same(f"{name}: errors", errors, [])
    drawn = [output for output in outputs if "image/png" in output.get("data", {})]
    check(f"{name}: a chart is drawn", len(drawn) >= 1, "no picture")
    warnings = [output["text"] for output in outputs if output.get("name") == "stderr"]
    printed = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
    if errors or not told.exists():
        return None
    return json.loads(told.read_text()) | {"warnings": "".join(warnings), "printed": printed}


def committed_plainly(path):
    """A notebook is kept without what it printed: its figures would be those of somebody's dataset."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    check(f"{path.name} is kept without outputs", all(not cell.outputs and cell.execution_count is None for cell in code))
    first, around = notebook.cells[0], zip(notebook.cells, notebook.cells[1:])
    check(f"{path.name} begins with a title", first.cell_type == "markdown" and first.source.startswith("# "), first.source)
    check(f"{path.name} has no empty cell", all(cell.source.strip() for cell in notebook.cells))
    check(f"{path.name}: a cell says what the next answers", any(a.cell_type == "markdown" and b.cell_type == "code" for a, b in around))


# ---------------------------------------------------------------------------------------------------------------------------
# Comparisons, all of them exact.


def number(text):
    return None if text in (None, "") else float(text)


def compare_cheapest(name, told, root, gpu=GPU):
    def of(rows, price):
        return [(row["provider"], row["offer_id"], number(row[price]), number(row["published_amount"])) for row in rows]

    ladders = rows("cheapest", "--gpu", gpu, "--limit", "0", "--output", root)
    wanted = [row for row in ladders if row["ladder"] == "on demand"]
    check(f"{name}: somebody is cheapest", len(wanted) > 0)
    same(f"{name}: cheapest", of(told, "price_usd_per_gpu_hour"), of(wanted, "lowest_usd_per_gpu_hour"))


def program_trend(root, gpu):
    text = program("trend", "--gpu", gpu, "--include-imports", "--format", "csv", "--output", root)
    figures = ("min_usd_per_gpu_hour", "median_usd_per_gpu_hour")
    lines = csv.DictReader(io.StringIO(text))
    return sorted(
        (row["source"], row["date"], int(row["offers"]), int(row["providers"]), *(float(row[name]) for name in figures)) for row in lines
    )


def compare_trend(name, told, root, gpu=GPU):
    figures = ("min_usd_per_gpu_hour", "median_usd_per_gpu_hour")
    wanted = program_trend(root, gpu)
    seen = sorted(
        (row["source"], str(row["snapshot_date"])[:10], row["offers"], row["providers"], *(row[figure] for figure in figures)) for row in told
    )
    same(f"{name}: trend", seen, wanted)
    return wanted


def compare_chart(name, told, wanted):
    """The chart has every day of the trend at its price, and every day between them as a gap. It says that some were typed."""
    check(f"{name}: the chart says that figures are typed", "typed by hand" in told["title"], told["title"])
    lines = told["lines"]
    drawn = {}
    for source in {row[0] for row in wanted}:
        medians = {row[1]: row[5] for row in wanted if row[0] == source}
        line = next((dict(line) for line in lines if {day: usd for day, usd in line if usd is not None} == medians), None)
        check(f"{name}: the line of {source}", line is not None, lines)
        if line is not None:
            first, last = min(medians), max(medians)
            span = (day_of(last) - day_of(first)).days + 1
            same(f"{name}: days of the line of {source}", len(line), span)
            drawn[source] = sum(usd is None for usd in line.values())
    check(f"{name}: a day without a night is a gap", drawn.get("collected", 0) >= 1 and drawn.get("import-made-up", 0) >= 2, drawn)


def day_of(text):
    return dt.date.fromisoformat(text)


def compare_changes(name, told, root):
    wanted = [row for row in rows("diff", "previous", "latest", "--output", root) if row["list"] != "exchange_rate"]

    def of(rows, listed, before, after):
        return sorted((row["offer_id"], number(row[before]), number(row[after])) for row in rows if row["list"] == listed)

    for listed in ("changed", "added", "removed", "not_observed"):
        ours = of(wanted, listed, "amount_a", "amount_b")
        check(f"{name}: the dataset has a {listed} offer", len(ours) > 0)
        same(f"{name}: {listed}", of(told, listed, "amount_before", "amount_after"), ours)
    renamed = [row for row in wanted if row["list"] == "renamed"]
    same(f"{name}: nothing is renamed in this dataset", renamed, [])
    causes = {row["offer_id"]: (row["cause"], row["change_percent"]) for row in wanted if row["list"] == "changed"}
    seen = {row["offer_id"]: (row["cause"], row["change_percent"]) for row in told if row["list"] == "changed"}
    same(f"{name}: causes and percents", seen, causes)


def of_one_machine(path, root, scratch, newest):
    told = run_notebook(path, root, scratch, path.stem)
    if told is None:
        return
    same(f"{path.stem}: the latest night is never an imported one", told["latest"], newest)
    same(f"{path.stem}: warnings", told["warnings"], "")
    compare_cheapest(path.stem, told["cheapest"], root)
    compare_chart(path.stem, told, compare_trend(path.stem, told["trend"], root))
    compare_changes(path.stem, told["changes"], root)


def of_typed_pages(path, root, scratch):
    """Somebody's first dataset, beside the notebook: one night, of typed recordings, which it must say. And another GPU than it names."""
    folder = root / "notebooks"
    folder.mkdir(exist_ok=True)
    told = run_notebook(path, None, scratch, f"{path.stem}, one typed night", OTHER_GPU, folder)
    if told is not None:
        check(f"{path.stem}: typed figures are called that", "typed by hand" in told["printed"], told["printed"])
        same(f"{path.stem}: nothing changed in one night", told["changes"], [])
        compare_cheapest(f"{path.stem}, one typed night", told["cheapest"], root, OTHER_GPU)
        compare_trend(f"{path.stem}, one typed night", told["trend"], root, OTHER_GPU)


def beyond_one_machine(path, root, scratch):
    try:
        import ray  # noqa: F401
    except ImportError:
        print(f"{path.stem}: skipped: ray is not installed")
        return
    told = run_notebook(path, root, scratch, path.stem)
    if told is not None:
        wanted = compare_trend(path.stem, told["trend"], root)
        compare_chart(path.stem, told, wanted)
        read = [row["offers"] for row in told["read_by"]]
        check(f"{path.stem}: both workers read offers", len(read) == 2 and min(read) > 0, told["read_by"])
        same(f"{path.stem}: between them the workers read every offer of the trend", sum(read), sum(row[2] for row in wanted))
        print(f"{path.stem}: offers read by each worker: {read}")


def main(wanted):
    os.environ.update(QUIET)
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    same("notebooks", [path.stem for path in paths], ["beyond_one_machine", "prices_with_duckdb", "prices_with_pandas", "prices_with_polars"])
    before = sorted(path.name for path in NOTEBOOKS.iterdir())
    for path in paths:
        committed_plainly(path)
    paths = [path for path in paths if not wanted or any(word in path.stem for word in wanted)]
    with tempfile.TemporaryDirectory(prefix="gpuledger-notebooks-") as scratch:
        scratch = Path(scratch)
        started = time.monotonic()
        datasets(scratch / "output", scratch / "typed", scratch)
        nights = rows("snapshots", "--output", scratch / "output")
        newest = max(row["snapshot_id"] for row in nights if not row["is_import"])
        check("an imported night is newer than every collected one", newest < max(row["snapshot_id"] for row in nights))
        print(f"datasets: {len(nights)} nights, {time.monotonic() - started:.0f} s", flush=True)
        for path in paths:
            if path.stem == "beyond_one_machine":
                beyond_one_machine(path, scratch / "output", scratch)
            else:
                of_one_machine(path, scratch / "output", scratch, newest)
                of_typed_pages(path, scratch / "typed", scratch)
    same("a notebook leaves nothing in its folder", sorted(path.name for path in NOTEBOOKS.iterdir()), before)
    return summed_up("notebooks")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
