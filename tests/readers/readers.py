"""Opens what the program publishes in every reader we name, and compares.

Run with the readers of `requirements.txt` installed. `GPULEDGER_BIN` names the program; without it, `target/debug/gpuledger`.
"""

import datetime as dt
import importlib.util
import json
import logging
import math
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from decimal import Decimal
from pathlib import Path

import daft
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from spark import spark

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checks import HOUSE, attempt, check, program, same, summed_up

QUIET = {"DAFT_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "1", "DAFT_PROGRESS_BAR": "0", "COLUMNS": "200"}
TEXT, WHOLE, LONG, FLOAT, BOOLEAN = "text", "int32", "int64", "float64", "boolean"
DECIMAL, DATE, INSTANT = "decimal(38,12)", "date", "timestamp(us, UTC)"

# ---------------------------------------------------------------------------------------------------------------------------
# Readers. Each opens a table and gives the types in the words of the schema files, and the rows as plain Python values.


def arrow_word(kind):
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TEXT
    words = {pa.int32(): WHOLE, pa.int64(): LONG, pa.float64(): FLOAT, pa.bool_(): BOOLEAN, pa.date32(): DATE}
    words |= {pa.decimal128(38, 12): DECIMAL, pa.timestamp("us", "UTC"): INSTANT}
    return words.get(kind, str(kind))


def from_arrow(table):
    return {field.name: arrow_word(field.type) for field in table.schema}, [tuple(row.values()) for row in table.to_pylist()]


def from_polars(frame):
    words = {pl.String: TEXT, pl.Int32: WHOLE, pl.Int64: LONG, pl.Float64: FLOAT, pl.Boolean: BOOLEAN, pl.Date: DATE}
    words |= {pl.Decimal(38, 12): DECIMAL, pl.Datetime("us", "UTC"): INSTANT}
    return {name: words.get(kind, str(kind)) for name, kind in frame.schema.items()}, frame.rows()


def from_pandas(frame):
    """Pandas keeps decimals and days as Python objects; a column without any value has no type."""
    kinds, columns = {}, []
    for name in frame.columns:
        series = frame[name]
        values = [None if value is None or value is pd.NaT or value is pd.NA or value != value else value for value in series.tolist()]
        if str(series.dtype) == "datetime64[us, UTC]":
            kinds[name] = INSTANT
            values = [value and value.to_pydatetime() for value in values]
        elif str(series.dtype) in ("str", "string"):
            kinds[name] = TEXT
        elif series.dtype == object:
            seen = {type(value) for value in values if value is not None}
            words = {str: TEXT, Decimal: DECIMAL, dt.date: DATE, bool: BOOLEAN}
            kinds[name] = words.get(next(iter(seen)), str(seen)) if len(seen) == 1 else (str(seen) if seen else None)
        else:
            kinds[name] = {"int32": WHOLE, "int64": LONG, "bool": BOOLEAN}.get(str(series.dtype), str(series.dtype))
        columns.append(values)
    return kinds, list(zip(*columns, strict=True))


def from_duckdb(relation):
    words = {"VARCHAR": TEXT, "INTEGER": WHOLE, "BIGINT": LONG, "DOUBLE": FLOAT, "BOOLEAN": BOOLEAN, "DATE": DATE}
    words |= {"DECIMAL(38,12)": DECIMAL, "TIMESTAMP WITH TIME ZONE": INSTANT}
    kinds = {name: words.get(str(kind), str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)}
    return kinds, from_arrow(relation.to_arrow_table())[1]


def from_daft(frame):
    kinds = daft.DataType
    words = {kinds.string(): TEXT, kinds.int32(): WHOLE, kinds.int64(): LONG, kinds.float64(): FLOAT, kinds.bool(): BOOLEAN}
    words |= {kinds.date(): DATE, kinds.decimal128(38, 12): DECIMAL, kinds.timestamp("us", "UTC"): INSTANT}
    types = {field.name: next((word for kind, word in words.items() if kind == field.dtype), str(field.dtype)) for field in frame.schema()}
    return types, from_arrow(frame.to_arrow())[1]


# How each reader opens a table, given its files as a glob and its directory; and whether it goes by the Delta log.
READERS = {
    "polars": (lambda files, place: from_polars(pl.read_parquet(files)), False),
    "pandas": (lambda files, place: from_pandas(pd.read_parquet(place)), False),
    "pandas with Arrow types": (
        lambda files, place: from_arrow(pa.Table.from_pandas(pd.read_parquet(place, dtype_backend="pyarrow"), preserve_index=False)),
        False,
    ),
    "duckdb": (lambda files, place: from_duckdb(duckdb.read_parquet(files)), False),
    "pyarrow": (lambda files, place: from_arrow(ds.dataset(place).to_table()), False),
    "daft": (lambda files, place: from_daft(daft.read_parquet(files)), False),
    "polars scan_delta": (lambda files, place: from_polars(pl.scan_delta(place).collect()), True),
    "deltalake": (lambda files, place: from_arrow(DeltaTable(place).to_pyarrow_table()), True),
    "daft read_deltalake": (lambda files, place: from_daft(daft.read_deltalake(place)), True),
}

# The same filter on the day, as each reader says it.
DAY_FILTERS = {
    "polars": lambda files, place, day: from_polars(pl.scan_parquet(files).filter(pl.col("snapshot_date") == day).collect()),
    "pandas": lambda files, place, day: from_pandas(pd.read_parquet(place, filters=[("snapshot_date", "==", day)])),
    "pandas, afterwards": lambda files, place, day: from_pandas((lambda all: all[all["snapshot_date"] == day])(pd.read_parquet(place))),
    "duckdb": lambda files, place, day: from_duckdb(duckdb.read_parquet(files).filter(f"snapshot_date = DATE '{day}'")),
    "pyarrow": lambda files, place, day: from_arrow(ds.dataset(place).to_table(filter=ds.field("snapshot_date") == day)),
    "daft": lambda files, place, day: from_daft(daft.read_parquet(files).where(daft.col("snapshot_date") == day)),
    "polars scan_delta": lambda files, place, day: from_polars(pl.scan_delta(place).filter(pl.col("snapshot_date") == day).collect()),
    "deltalake": lambda files, place, day: from_arrow(DeltaTable(place).to_pyarrow_table(filters=[("snapshot_date", "=", day)])),
    "daft read_deltalake": lambda files, place, day: from_daft(daft.read_deltalake(place).where(daft.col("snapshot_date") == day)),
}


def plain(value):
    """One spelling of a value, so that rows of different readers are equal exactly when their values are."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).isoformat()
    if isinstance(value, Decimal):
        return f"decimal {value:f}"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return repr(float(value))
    return str(value)


def rows_of(kinds, rows, order):
    """Rows in one order of columns and rows."""
    places = [list(kinds).index(name) for name in order]
    return sorted(tuple(plain(row[place]) for place in places) for row in rows)


def table_places(root, table):
    place = root / table
    return str(place / ("*.parquet" if table == "rates" else "20*/*.parquet")), str(place)


def wanted_kinds(table):
    """Types as the schema file says them, where it stands; else None."""
    for path in sorted((HOUSE / "output/schema").glob(f"{table}*.toml"), reverse=True):
        return {column["name"]: column["type"] for column in tomllib.loads(path.read_text())["column"]}
    return None


def compare_kinds(label, reader, kinds, wanted):
    loose = reader == "pandas"
    for name, word in wanted.items():
        seen = kinds.get(name, "no such column")
        if loose and (seen is None or (word in (WHOLE, LONG) and seen == FLOAT)):
            continue
        if seen != word:
            check(f"{label}: type of {name}", False, f"{seen} instead of {word}")
            return
    check(f"{label}: types", list(kinds) == list(wanted), f"columns {list(kinds)}")


def compare_table(root, table, when, count=None):
    """Opens a table in all readers: same types, same rows, every value equal."""
    files, place = table_places(root, table)
    kinds = wanted_kinds(table) or from_arrow(ds.dataset(place).to_table())[0]
    order = list(kinds)
    first = None
    for reader, (open_table, _) in READERS.items():
        label = f"{table} {when}, {reader}"
        opened = attempt(label, lambda open_table=open_table: open_table(files, place))
        if opened is None:
            continue
        compare_kinds(label, reader, opened[0], kinds)
        rows = attempt(f"{label}: rows", lambda opened=opened: rows_of(*opened, order))
        if rows is None:
            continue
        if first is None:
            first = rows
            check(f"{label}: has rows", len(rows) > 0 and count in (None, len(rows)), f"{len(rows)} rows instead of {count}")
        same(f"{label}: row count", len(rows), len(first))
        if table == "offers":
            offer = order.index("offer_id")
            check(f"{label}: offer ids", {row[offer] for row in rows} == {row[offer] for row in first}, "other ids")
        check(f"{label}: values", rows == first, next(((a, b) for a, b in zip(rows, first, strict=False) if a != b), "other count"))
    return first


def compare_findings(root, night):
    """The findings are a single file, beside the tables."""
    path = str(root / "runs" / f"{night}.findings.parquet")
    kinds, rows = from_arrow(pq.read_table(path))
    same("findings: types", set(kinds.values()), {TEXT})
    first = rows_of(kinds, rows, list(kinds))
    check("findings: has rows", len(first) > 0)
    for reader, (open_table, reads_log) in READERS.items():
        if not reads_log:
            opened = attempt(f"findings, {reader}", lambda open_table=open_table: open_table(path, path))
            if opened is not None:
                check(f"findings, {reader}: values", rows_of(*opened, list(kinds)) == first, "other rows")


# ---------------------------------------------------------------------------------------------------------------------------
# Steps.


def pinned_columns(root):
    """The types that readers of prices rely on, written down once more and not taken from the schema files."""
    wanted = {
        "snapshot_id": TEXT,
        "snapshot_date": DATE,
        "observed_at": INSTANT,
        "provider": TEXT,
        "offer_id": TEXT,
        "gpu_model": TEXT,
        "gpu_count": DECIMAL,
        "is_fractional": BOOLEAN,
        "published_amount": DECIMAL,
        "published_text": TEXT,
        "price_usd_per_gpu_hour": FLOAT,
        "rate_date": DATE,
    }
    for reader, (open_table, _) in READERS.items():
        kinds, rows = open_table(*table_places(root, "offers"))
        for name, word in wanted.items():
            same(f"offers, {reader}: {name}", kinds[name], word)
        names = list(kinds)
        instance, amount, price = (names.index(name) for name in ("instance_type", "published_amount", "price_usd_per_gpu_hour"))
        provider, model, region, os_ = (names.index(name) for name in ("provider", "pricing_model", "region", "os"))

        def priced(who, machine, rows=rows):
            return [row for row in rows if row[provider] == who and row[instance] == machine and row[model] == "on_demand" and row[os_] == "linux"]

        oci = priced("oci", "BM.GPU.H100.8")
        same(f"oci H100, {reader}", [(row[amount], row[price]) for row in oci], [(Decimal("10"), 10.0)])
        check(f"oci H100, {reader}: exact type", all(type(row[amount]) is Decimal for row in oci), oci)
        azure = [row for row in priced("azure", "Standard_ND96isr_H100_v5") if row[region] == "eastus"]
        same(f"azure H100, {reader}", [(row[amount], row[price]) for row in azure], [(Decimal("98.32"), 12.29)])


def five_cheapest(root):
    """The five cheapest H100 of the latest night, worked out by hand."""
    offers = pq.read_table(sorted((root / "offers").glob("20*/*.parquet"))[-1]).to_pylist()
    prices = sorted(
        offer["price_usd_per_gpu_hour"]
        for offer in offers
        if (offer["gpu_model"] or "").startswith("H100")
        and offer["pricing_model"] == "on_demand"
        and offer["os"] == "linux"
        and offer["is_fractional"] is False
        and offer["price_usd_per_gpu_hour"] is not None
    )
    return prices[:5]


def run_python(name, arguments, directory, wanted=()):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=directory, capture_output=True, text=True, env=os.environ | QUIET, stdin=subprocess.DEVNULL
    )
    check(f"{name} runs", done.returncode == 0, done.stderr)
    check(f"{name} prints", bool(done.stdout.strip()), "nothing")
    place = 0
    for number in wanted:
        # Readers print as many digits as they like.
        numbers = re.compile(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.])").finditer(done.stdout, place)
        found = next((text for text in numbers if abs(float(text.group()) - number) < 1e-5), None)
        check(f"{name} prints {number} in its place", found is not None, done.stdout)
        place = found.end() if found else place


def documented_blocks(directory):
    """Every Python block of the pages, as it stands, in a fresh interpreter."""
    cheapest = five_cheapest(directory / "output")
    for page in ("output/README.md", "README.md"):
        path = HOUSE / page
        blocks = re.findall(r"^```python[^\n]*\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S) if path.exists() else []
        if page == "output/README.md":
            check(f"{page} has a block a reader", len(blocks) >= 6, f"{len(blocks)} blocks")
        for number, block in enumerate(blocks, 1):
            wanted = cheapest if page == "output/README.md" else ()
            run_python(f"{page}, Python block {number}", ["-c", block], directory, wanted)
    for notebook in sorted((HOUSE / "output/notebooks").glob("*.py")):
        run_python(f"notebook {notebook.name}", [str(notebook)], directory)


def corrections(directory):
    """What the page says of corrections: of a night and its correction only the latter is left, in both readers."""
    page = (HOUSE / "output/README.md").read_text(encoding="utf-8")
    in_polars = re.search(r"`(offers\.filter\(.*?\.over\(.*?)`", page, re.S)[1]
    in_duckdb = re.search(r"`(SELECT \* FROM offers QUALIFY.*?)`", page, re.S)[1]
    nights = ["2026-10-30T18-00-00Z", "2026-10-30T18-00-00Z-r1", "2026-10-30T18-00-00Z-r2", "2026-10-31T18-00-00Z"]
    wanted = [(nights[2], 2), (nights[3], 3)]
    source = pl.DataFrame({"snapshot_id": nights + [nights[3]], "price": [0, 1, 2, 3, 3]})
    for number, night in enumerate(nights):
        source.filter(pl.col("snapshot_id") == night).write_parquet(directory / f"correction-{number}.parquet")
    offers = pl.scan_parquet(directory / "correction-*.parquet")
    kept = eval(" ".join(in_polars.split()), {"pl": pl, "offers": offers}).collect()
    same("corrections, polars", sorted(set(kept.rows())), wanted)
    same("corrections, polars: rows", kept.height, 3)
    offers = duckdb.read_parquet(str(directory / "correction-*.parquet"))
    kept = duckdb.sql(in_duckdb).fetchall()
    same("corrections, duckdb", sorted(set(kept)), wanted)
    same("corrections, duckdb: rows", len(kept), 3)


def day_filters(root, day):
    files, place = table_places(root, "offers")
    order = pq.read_schema(sorted((root / "offers").glob("20*/*.parquet"))[0]).names
    wanted = rows_of(*from_arrow(pq.ParquetFile(next((root / "offers" / str(day)).glob("*.parquet"))).read()), order)
    for reader, read in DAY_FILTERS.items():
        opened = attempt(f"{day}, {reader}", lambda read=read: read(files, place, day))
        if opened is not None:
            check(f"{day}, {reader}: the rows of that day", rows_of(*opened, order) == wanted, f"{len(opened[1])} of {len(wanted)} rows")


def versions(root, nights):
    """Version n holds the first n nights, in every reader of the log; the program lists the same."""
    place = str(root / "offers")
    same("offers: version", DeltaTable(place).version(), len(nights))
    for version in range(1, len(nights) + 1):
        wanted = set(nights[:version])
        table = DeltaTable(place, version=version)
        same(f"version {version}, deltalake: nights", set(table.to_pyarrow_table()["snapshot_id"].to_pylist()), wanted)
        same(f"version {version}, deltalake: files", len(table.file_uris()), version)
        scanned = pl.scan_delta(place, version=version).select("snapshot_id").collect()["snapshot_id"]
        same(f"version {version}, scan_delta: nights", set(scanned), wanted)
        same(f"version {version}, scan_delta: rows", scanned.len(), table.to_pyarrow_table().num_rows)
        daft_nights = daft.read_deltalake(place, version=version).select("snapshot_id").distinct().to_pydict()["snapshot_id"]
        same(f"version {version}, daft: nights", set(daft_nights), wanted)
    same("version 0 is empty", DeltaTable(place, version=0).to_pyarrow_table().num_rows, 0)
    listed_nights(root, nights)


def listed_nights(root, nights):
    listed = json.loads(program("snapshots", "--format", "json", "--output", root))
    same("snapshots: nights", sorted(next(v for k, v in row.items() if k.startswith("snapshot")) for row in listed), nights)


def night_of(root):
    return sorted(path.name.removesuffix(".json") for path in (root / "runs").glob("*.json"))


def collect(root, at=None):
    program("collect", "--recorded", "--output", root, *(("--at", at) if at else ()))


def clickhouse(directory, nights, amounts):
    """ClickHouse by the page's own SQL, by the files and by the log; in a process of its own, beside which others may be loaded."""
    if importlib.util.find_spec("chdb") is None:
        print("clickhouse: skipped: chdb is not installed")
        return
    arguments = [str(Path(__file__).with_name("clickhouse.py")), str(HOUSE / "output/README.md")]
    done = subprocess.run([sys.executable, *arguments], cwd=directory, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    check("clickhouse runs", done.returncode == 0, done.stderr)
    told = json.loads(done.stdout or "{}")
    same("clickhouse: the page's SQL", told["page"], five_cheapest(directory / "output"))
    for way, instant in (("files", "DateTime64(6, 'UTC')"), ("log", "DateTime64(6)")):
        types = told[way]["types"]
        wanted = {"published_amount": "Decimal(38, 12)", "snapshot_date": "Date32", "observed_at": instant, "is_fractional": "Bool"}
        wanted |= {"provider": "String", "price_usd_per_gpu_hour": "Float64"}
        same(f"clickhouse by {way}: types", {name: types[name] for name in wanted}, {name: f"Nullable({word})" for name, word in wanted.items()})
        same(f"clickhouse by {way}: amounts", sorted(Decimal(text) for text in told[way]["amounts"]), amounts)
        same(f"clickhouse by {way}: days", told[way]["days"], [night[:10] for night in nights])
    same("clickhouse: versions", told["versions"], {str(version): nights[:version] for version in range(1, len(nights) + 1)})


def main():
    os.environ.update(QUIET)
    logging.getLogger("daft").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="gpuledger-readers-") as directory:
        directory = Path(directory)
        root = directory / "output"

        print("readers: one night", flush=True)
        collect(root)
        (night,) = night_of(root)
        day = dt.date.fromisoformat(night[:10])
        count = json.loads((root / "runs" / f"{night}.json").read_text())["offers"]
        compare_table(root, "offers", "after one night", count)
        compare_table(root, "coverage", "after one night")
        compare_table(root, "rates", "after one night")
        compare_findings(root, night)
        attempt("pinned columns", lambda: pinned_columns(root))
        attempt("day filters", lambda: day_filters(root, day))
        attempt("corrections", lambda: corrections(directory))
        print("readers: the pages' own blocks", flush=True)
        documented_blocks(directory)

        print("readers: three nights", flush=True)
        for later in (1, 2):
            collect(root, f"{day + dt.timedelta(days=later)}T{night[11:].replace('-', ':')}")
        nights = night_of(root)
        same("three nights", len(nights), 3)
        compare_table(root, "offers", "after three nights", 3 * count)
        compare_table(root, "coverage", "after three nights")
        compare_table(root, "rates", "after three nights")
        for later in range(3):
            attempt("day filters", lambda later=later: day_filters(root, day + dt.timedelta(days=later)))
        attempt("versions", lambda: versions(root, nights))
        documented_blocks(directory)
        amounts = sorted(pq.read_table(str(root / "offers"))["published_amount"].to_pylist())
        attempt("clickhouse", lambda: clickhouse(directory, nights, amounts))

        print("readers: checkpoints", flush=True)
        for table in ("offers", "coverage", "rates"):
            DeltaTable(str(root / table)).create_checkpoint()
            check(f"{table}: checkpoint", len(list((root / table / "_delta_log").glob("*.checkpoint.parquet"))) == 1, "no file")
            compare_table(root, table, "with a checkpoint")
        attempt("versions with a checkpoint", lambda: versions(root, nights))
        # What a log looks like after old entries were cleaned up: nothing before the checkpoint's version.
        for table in ("offers", "coverage", "rates"):
            log = root / table / "_delta_log"
            for entry in sorted(log.glob("*.json"))[:-1]:
                entry.unlink()
        attempt("nights of a shortened log", lambda: listed_nights(root, nights))
        collect(root, f"{day + dt.timedelta(days=3)}T{night[11:].replace('-', ':')}")
        nights = night_of(root)
        same("four nights", len(nights), 4)
        for table, rows in (("offers", 4 * count), ("coverage", None), ("rates", None)):
            compare_table(root, table, "after a checkpoint and another night", rows)
        attempt("nights after another", lambda: listed_nights(root, nights))
        documented_blocks(directory)

        print("readers: Spark", flush=True)
        amounts = sorted(pq.read_table(str(root / "offers"))["published_amount"].to_pylist())
        attempt("spark", lambda: spark(root, 4 * count, amounts, same))

    return summed_up("readers")


if __name__ == "__main__":
    sys.exit(main())
