"""Runs the program beside polars and DuckDB on the same files, and compares the answers.

    scale_peers.py PROGRAM TWO MANY

PROGRAM is the built binary, TWO a dataset of two large nights, MANY one of many nights. Every measurement is of a whole
process: wall time, user and system seconds, most memory. Cold means that the kernel was told to forget the files first
(`posix_fadvise`); that is asked before every round, of every file of the dataset. The sides take turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROUNDS = int(os.environ.get("GPULEDGER_SCALE_ROUNDS", "3"))
PRICE = [
    "published_amount",
    "published_upfront_amount",
    "published_currency_code",
    "published_unit",
    "published_per",
    "tax_included",
]
SHOWN = [
    "provider",
    "region",
    "zone",
    "instance_type",
    "offer_label",
    "gpu_model",
    "gpu_count",
    "os",
    "licence",
    "tenancy",
    "pricing_model",
    "plan",
    "commitment_months",
    "upfront",
]
ORDER = [
    "gpu_model",
    "provider",
    "site",
    "region",
    "zone",
    "instance_type",
    "offer_label",
    "os",
    "pricing_model",
    "plan",
    "commitment_months",
    "upfront",
    "is_promotion",
    "gpu_count",
    "offer_id",
]
H100 = ["H100", "H100 SXM", "H100 PCIe", "H100 NVL"]


def offers(dataset):
    return sorted(str(path) for path in Path(dataset, "offers").glob("20*/*.parquet"))


# The same work by hand. Each prints its answer as JSON.


def polars_diff(a, b):
    import polars as pl

    sides = [pl.scan_parquet(path).select(["offer_id", *PRICE, *SHOWN, "price_native_per_hour"]) for path in (a, b)]
    both = sides[0].join(sides[1], on="offer_id", how="full", coalesce=True, suffix="_b")
    differs = pl.any_horizontal([pl.col(name).ne_missing(pl.col(f"{name}_b")) for name in PRICE])
    rows = both.filter(differs).sort("offer_id").collect()
    in_a, in_b = rows["published_currency_code"].is_not_null(), rows["published_currency_code_b"].is_not_null()
    return {"changed": int((in_a & in_b).sum()), "gone": int((in_a & ~in_b).sum()), "come": int((~in_a & in_b).sum())}


def duckdb_diff(a, b):
    import duckdb

    differs = " or ".join(f"a.{name} is distinct from b.{name}" for name in PRICE)
    shown = ", ".join(f"coalesce(b.{name}, a.{name}) as {name}" for name in SHOWN)
    duckdb.execute(
        f"create temp table d as select offer_id, {shown}, a.published_amount as amount_a, b.published_amount as amount_b, "
        f"a.published_currency_code is not null as in_a, b.published_currency_code is not null as in_b "
        f"from '{a}' a full join '{b}' b using (offer_id) where {differs} order by offer_id"
    )
    counts = "count(*) filter (in_a and in_b), count(*) filter (in_a and not in_b), count(*) filter (in_b and not in_a)"
    changed, gone, come = duckdb.execute(f"select {counts} from d").fetchall()[0]
    return {"changed": changed, "gone": gone, "come": come}


def polars_trend(*files):
    import polars as pl

    price = pl.col("price_usd_per_gpu_hour")
    days = (
        pl.scan_parquet(list(files))
        .filter(
            pl.col("gpu_model").is_in(H100),
            pl.col("source_kind") != "aggregator",
            ~pl.col("is_fractional"),
            pl.col("plan").is_null(),
            pl.col("os") == "linux",
            pl.col("pricing_model") == "on_demand",
            price.is_not_null(),
        )
        .group_by("snapshot_date")
        .agg(price.len().alias("offers"), price.median().alias("median"))
        .sort("snapshot_date")
        .collect()
    )
    return [[str(day), count, round(median, 9)] for day, count, median in days.iter_rows()]


def duckdb_trend(*files):
    import duckdb

    names = ", ".join(f"'{name}'" for name in H100)
    days = duckdb.execute(
        "select snapshot_date, count(*), median(price_usd_per_gpu_hour) from read_parquet(?) "
        f"where gpu_model in ({names}) and source_kind <> 'aggregator' and not is_fractional and plan is null "
        "and os = 'linux' and pricing_model = 'on_demand' and price_usd_per_gpu_hour is not null group by 1 order by 1",
        [list(files)],
    ).fetchall()
    return [[str(day), count, round(median, 9)] for day, count, median in days]


def prices_polars(pl):
    native, count = pl.col("published_amount").cast(pl.Float64), pl.col("gpu_count").cast(pl.Float64)
    rate = pl.col("usd_per_native").cast(pl.Float64)
    return [
        native.alias("price_native_per_hour"),
        (native / count).alias("price_native_per_gpu_hour"),
        (native * rate).alias("price_usd_per_hour"),
        (native * rate / count).alias("price_usd_per_gpu_hour"),
        (native * rate / count / pl.col("gpu_memory_gb").cast(pl.Float64)).alias("usd_per_gpu_gb_hour"),
    ]


def polars_shuffle(source, target):
    import polars as pl

    rows = pl.read_parquet(source).sample(fraction=1.0, shuffle=True, seed=1)
    rows.write_parquet(target, compression="uncompressed")
    return rows.height


def polars_publish(source, target):
    import polars as pl

    rows = pl.read_parquet(source).with_columns(prices_polars(pl)).sort(ORDER, nulls_last=True, maintain_order=True)
    rows.write_parquet(target, compression="zstd", row_group_size=20_000)
    return {"rows": rows.height, "bytes": os.path.getsize(target)}


def duckdb_publish(source, target):
    import duckdb

    native, count, rate = "published_amount::double", "gpu_count::double", "usd_per_native::double"
    duckdb.execute(
        f"copy (select * replace ({native} as price_native_per_hour, {native} / {count} as price_native_per_gpu_hour, "
        f"{native} * {rate} as price_usd_per_hour, {native} * {rate} / {count} as price_usd_per_gpu_hour, "
        f"{native} * {rate} / {count} / gpu_memory_gb::double as usd_per_gpu_gb_hour) "
        f"from '{source}' order by {', '.join(name + ' nulls last' for name in ORDER)}) "
        f"to '{target}' (format parquet, compression zstd, row_group_size 20480)"
    )
    rows = duckdb.execute(f"select count(*) from '{target}'").fetchall()[0][0]
    return {"rows": rows, "bytes": os.path.getsize(target)}


PEERS = {
    function.__name__: function
    for function in (polars_diff, duckdb_diff, polars_trend, duckdb_trend, polars_shuffle, polars_publish, duckdb_publish)
}


# Measuring.


def forget(dataset):
    os.sync()
    for path in Path(dataset).rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def run(command):
    """Runs a process: its output, seconds, processor seconds, most memory in MB."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 10, 16):
            raise SystemExit(f"{command[:4]} ended with {child.returncode}")
        output.seek(0)
        return output.read(), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def side_by_side(what, sides, dataset, is_cold):
    """Each side's answer, after saying what it took."""
    best, answers = {}, {}
    for _ in range(ROUNDS):
        for name, command in sides.items():
            if is_cold:
                forget(dataset)
            output, *figures = run(command)
            answers[name] = output
            if name not in best or figures[0] < best[name][0]:
                best[name] = figures
    print(f"\n{what}, {'cold' if is_cold else 'warm'}")
    own = next(iter(best.values()))
    for name, (seconds, cpu, memory) in best.items():
        ratio = f"{seconds / own[0]:5.2f} x the time, {cpu / own[1]:5.2f} x the processor" if best[name] is not own else ""
        print(f"  {name:12}{seconds * 1e3:8.0f} ms {cpu * 1e3:8.0f} ms of processor {memory:7.0f} MB  {ratio}")
    sys.stdout.flush()
    return answers


def peer(function, *args):
    return [sys.executable, __file__, function, *args]


def diffs(program, two):
    a, b = offers(two)
    sides = {
        "gpuledger": [program, "diff", "1", "2", "--output", two, "--format", "json"],
        "polars": peer("polars_diff", a, b),
        "DuckDB": peer("duckdb_diff", a, b),
    }
    for is_cold in (True, False):
        answers = side_by_side("difference of two nights", sides, two, is_cold)
    rows = json.loads(answers["gpuledger"])
    lists = [row["list"] for row in rows]
    renamed = lists.count("renamed")
    found = {
        "changed": lists.count("changed"),
        "gone": renamed + sum(row["list"] in ("removed", "not_observed") and row["missing_in"] == "b" for row in rows),
        "come": renamed + sum(row["list"] in ("added", "not_observed") and row["missing_in"] == "a" for row in rows),
    }
    for name in ("polars", "DuckDB"):
        assert json.loads(answers[name]) == found, (name, answers[name], found)
    print(f"  all three find {found}")


def trends(program, many):
    files = offers(many)
    sides = {
        "gpuledger": [program, "trend", "--gpu", "h100", "--output", many, "--format", "json"],
        "polars": peer("polars_trend", *files),
        "DuckDB": peer("duckdb_trend", *files),
    }
    for is_cold in (True, False):
        answers = side_by_side(f"trend of one GPU over {len(files)} nights", sides, many, is_cold)
    days = json.loads(answers["gpuledger"])
    found = [[day["date"], day["offers"], round(day["median_usd_per_gpu_hour"], 9)] for day in days]
    for name in ("polars", "DuckDB"):
        assert json.loads(answers[name]) == found, (name, json.loads(answers[name])[:2], found[:2])
    offers_read = sum(day[1] for day in found)
    print(f"  all three find the same {len(found)} medians, of {offers_read} prices; one: {statistics.median(d[2] for d in found)}")


def sizes(two):
    own = offers(two)[0]
    with tempfile.TemporaryDirectory(dir=two) as folder:
        shuffled = f"{folder}/shuffled.parquet"
        height = json.loads(run(peer("polars_shuffle", own, shuffled))[0])
        sides = {name: peer(function, shuffled, f"{folder}/{name}.parquet") for name, function in
                 (("polars", "polars_publish"), ("DuckDB", "duckdb_publish"))}
        answers = side_by_side("five prices in floats, sorted and written by the peers", sides, folder, False)
        for name, answer in answers.items():
            print(f"  {name:12}{json.loads(answer)['bytes'] / height:8.1f} bytes a row")
    print(f"  {'gpuledger':12}{os.path.getsize(own) / height:8.1f} bytes a row")


def nights(program, many):
    """A whole night of recordings, into an empty dataset and into the one of many nights."""
    for name, dataset in (("empty", None), ("many nights", many)):
        figures = []
        for night in range(ROUNDS):
            with tempfile.TemporaryDirectory() as empty:
                at = f"2031-01-0{night + 1}T00:00:00Z"
                command = [program, "collect", "--recorded", "--at", at, "--output", dataset or empty]
                figures.append(run(command)[1:])
        seconds, cpu, memory = min(figures)
        print(f"  {name:12}{seconds * 1e3:8.0f} ms {cpu * 1e3:8.0f} ms of processor {memory:7.0f} MB")


def main():
    if sys.argv[1] in PEERS:
        print(json.dumps(PEERS[sys.argv[1]](*sys.argv[2:])))
        return
    program, two, many = sys.argv[1:]
    # Nothing large is imported here: the memory of this process would count as that of its children.
    print(f"\npolars {version('polars')}, DuckDB {version('duckdb')}; best of {ROUNDS} rounds in turns")
    diffs(program, two)
    sizes(two)
    trends(program, many)
    print("\ncollect of all recordings without a network, into a dataset that is")
    nights(program, many)


main()
