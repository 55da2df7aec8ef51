"""ClickHouse on the published files, in a process of its own: what the page's own SQL gives, the types, and each version by the log.

Run from the directory that holds `output/`, with the page as argument and `chdb` installed, which is ClickHouse as a library.
Prints one JSON object, for `readers.py`.
"""

import json
import re
import sys
from pathlib import Path

import chdb


def rows(query):
    return json.loads(str(chdb.query(query, "JSON")))["data"]


def main():
    page = Path(sys.argv[1]).read_text(encoding="utf-8")
    section = page.split("\n## ClickHouse\n", 1)[1].split("\n## ", 1)[0]
    (query,) = re.findall(r"^```sql\n(.*?)^```", section, re.M | re.S)
    table = str(Path("output/offers").resolve())
    by_log, by_files = f"deltaLakeLocal('{table}')", "file('output/offers/20*/*.parquet')"
    # Amounts as text, so that none of their digits gets lost on the way.
    answers = {"page": [row["price_usd_per_gpu_hour"] for row in rows(query)]}
    for name, source in (("log", by_log), ("files", by_files)):
        described = rows(f"DESCRIBE {source}")
        answers[name] = {
            "types": {row["name"]: row["type"] for row in described},
            "amounts": sorted(row["amount"] for row in rows(f"SELECT toString(published_amount) AS amount FROM {source}")),
            "days": [row["day"] for row in rows(f"SELECT DISTINCT toString(snapshot_date) AS day FROM {source} ORDER BY day")],
        }
    last = len(list(Path("output/offers/_delta_log").glob("*.json"))) - 1
    versions = {}
    for version in range(1, last + 1):
        settings = f"SETTINGS delta_lake_snapshot_version = {version}"
        versions[version] = sorted(row["snapshot_id"] for row in rows(f"SELECT DISTINCT snapshot_id FROM {by_log} {settings}"))
    answers["versions"] = versions
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
