"""Plain Spark on the published files, without the Delta package, where there is a Java for it."""

import os
import re
import shutil
import subprocess


def java_release():
    """Release of the Java on this machine; 0 without one."""
    if shutil.which("java") is None:
        return 0
    said = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def spark(root, count, amounts, same):
    """Reads the dataset below `root`; `same(name, seen, wanted)` takes each comparison."""
    if java_release() == 0:
        print("spark: skipped: no java")
        return
    if java_release() < 17:
        print("spark: skipped: java is older than 17")
        return
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("spark: skipped: pyspark is not installed")
        return
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        offers = session.read.parquet(str(root / "offers/20*/*.parquet"))
        types = {field.name: field.dataType.simpleString() for field in offers.schema.fields}
        same("spark: count", offers.count(), count)
        wanted = {"published_amount": "decimal(38,12)", "snapshot_date": "date", "observed_at": "timestamp"}
        wanted |= {"provider": "string", "is_fractional": "boolean", "price_usd_per_gpu_hour": "double"}
        for name, word in wanted.items():
            same(f"spark: {name}", types[name], word)
        same("spark: amounts", sorted(row[0] for row in offers.select("published_amount").collect()), amounts)
    finally:
        session.stop()
