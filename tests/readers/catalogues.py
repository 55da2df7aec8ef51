"""Exported catalogues, read by the programs that they are for: gpuhunt with its own integrity tests, and SkyPilot.

GPULEDGER_BIN names the program. Every price that they find is held against `gpuledger offers`, and every offer that a
catalogue can hold against them. Without one of the two programs that part says so.
"""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checks import check, program, ran, summed_up

def export(form, root, folder):
    """Exports, and returns the cards for which the catalogue has no name."""
    said = ran("export", "--format", form, folder, "--output", root, exits=(0, 10)).stderr
    return set(re.findall(r"\d+ of (.+), for which", said))


def sayable(offers, sellers, no_name):
    """What a catalogue of machines can hold: said here once more, from the meaning of the columns alone."""
    for offer in offers:
        holds = (
            offer["provider"] in sellers
            and offer["source_kind"] != "aggregator"
            and offer["listing_count"] is None
            and offer["pricing_model"] in ("on_demand", "spot")
            and offer["os"] == "linux"
            and offer["tenancy"] != "dedicated"
            and offer["is_promotion"] is not True
            and offer["tax_included"] is not True
            and offer["is_fractional"] is False
            and offer["gpu_model"] not in no_name
        )
        none = ("plan", "licence", "commitment_months", "published_upfront_amount")
        stated = ("gpu_model", "gpu_memory_gb", "instance_type", "region", "vcpus", "system_memory_gib", "price_usd_per_hour")
        if holds and all(offer[name] is None for name in none) and all(offer[name] is not None for name in stated):
            yield offer


def key(machine, region, gpus, is_spot, price):
    return (machine, region, float(gpus), is_spot, float(price))


GPUHUNT_SELLERS = {"lambda": "lambdalabs"} | {
    name: name for name in ("aws", "azure", "cloudrift", "gcp", "nebius", "oci", "runpod", "verda")
}

# Their tests of one seller that ask for what the recorded night has not: their catalogues have machines without GPUs too,
# and all regions.
NOT_IN_A_RECORDED_NIGHT = {
    "aws": {"test_m5_large_locations", "test_gpu_present"},
    "azure": {"test_standard_d2s_v3_locations", "test_gpu_present"},
    "cloudrift": set(),
    "gcp": {"test_e2_highcpu_2_zones", "test_gpu_present", "test_tpu_present", "test_fractional_g4_specs"},
}


def gpuhunt_part(root, directory, offers):
    try:
        import gpuhunt
    except ImportError:
        print("gpuhunt: skipped: it is not installed")
        return
    folder = directory / "gpuhunt"
    no_name = export("gpuhunt", root, folder)
    wanted = {}
    for offer in sayable(offers, GPUHUNT_SELLERS, no_name):
        machine = offer["instance_type"].split("+")[0] if offer["provider"] == "gcp" else offer["instance_type"]
        is_spot = offer["pricing_model"] == "spot"
        of = key(machine, offer["zone"] or offer["region"], offer["gpu_count"], is_spot, offer["price_usd_per_hour"])
        wanted[(GPUHUNT_SELLERS[offer["provider"]], *of)] = offer

    def found(items):
        return {(i.provider, *key(i.instance_name, i.location, i.gpu_count, i.spot, i.price)): i for i in items}

    os.environ["GPUHUNT_CATALOG_DIR"] = str(folder)
    of_folder = found(gpuhunt.Catalog(auto_reload=False).query())
    del os.environ["GPUHUNT_CATALOG_DIR"]
    check("gpuhunt: prices", set(of_folder) == set(wanted), f"{set(of_folder) ^ set(wanted)}")
    check("gpuhunt: some", len(of_folder) > 50, f"{len(of_folder)}")
    for place, item in of_folder.items():
        offer = wanted[place]
        check(f"gpuhunt: {place}: memory of a card", item.gpu_memory == float(offer["gpu_memory_gb"]), item)
        check(f"gpuhunt: {place}: size", (item.cpu, item.memory) == (offer["vcpus"], float(offer["system_memory_gib"])), item)
        known = {accelerator.name for accelerator in gpuhunt.find_accelerators(vendors=[item.gpu_vendor])}
        check(f"gpuhunt: {place}: a card that it knows", item.gpu_name in known, item)

    # The same over the way on which a server gets a catalogue.
    os.environ["GPUHUNT_CATALOG_URL"] = folder.as_uri()
    catalog = gpuhunt.Catalog(auto_reload=False)
    # It tells at length of each seller that has no catalogue here, and goes on.
    logging.getLogger("gpuhunt").setLevel(logging.CRITICAL)
    catalog.load()
    sold = sorted({place[0] for place in wanted})
    fetched = found(catalog.query(provider=sold))
    check("gpuhunt: fetched", set(fetched) == set(wanted), f"{set(fetched) ^ set(wanted)}")
    cheapest = catalog.query(provider=sold, gpu_name="H100", min_gpu_count=8, spot=False)
    check("gpuhunt: 8 × H100 on demand", min(i.price for i in cheapest) > 1, cheapest)
    check("gpuhunt: they are H100", {(i.gpu_name, i.gpu_count, i.spot) for i in cheapest} == {("H100", 8, False)}, cheapest)
    del os.environ["GPUHUNT_CATALOG_URL"]
    integrity_part(folder, sold, directory)
    print(f"gpuhunt: {len(of_folder)} offers of {', '.join(sold)}", flush=True)


def integrity_part(folder, sold, directory):
    """Its own integrity tests: those of every catalogue file, and those of one seller."""
    try:
        import integrity_tests.base  # noqa: F401
        import pytest  # noqa: F401
    except ImportError:
        print("gpuhunt's integrity tests: skipped: they or pytest are not installed")
        return
    place = directory / "integrity"
    place.mkdir()
    (place / "conftest.py").write_text("from integrity_tests.conftest import catalog_dir\n")
    classes = "".join(f"class Test_{name}(CatalogFileIntegrityTests):\n    CATALOG_NAME = '{name}'\n\n\n" for name in sold)
    (place / "test_files.py").write_text("from integrity_tests.base import CatalogFileIntegrityTests\n\n\n" + classes)

    def run(*what):
        arguments = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-rA", *what]
        environment = os.environ | {"CATALOG_DIR": str(folder)}
        done = subprocess.run(arguments, cwd=place, capture_output=True, text=True, env=environment)
        outcomes = re.findall(r"^(PASSED|FAILED|ERROR) \S*::(\w+)", done.stdout, re.M)
        return outcomes, done.stdout

    outcomes, text = run("test_files.py")
    check("integrity tests of every file", outcomes and all(outcome == "PASSED" for outcome, _ in outcomes), text)
    print(f"integrity tests of every file: {len(outcomes)} on {len(sold)} files", flush=True)
    for name in sold:
        outcomes, text = run("--pyargs", f"integrity_tests.test_{name}")
        failing = {test for outcome, test in outcomes if outcome != "PASSED"}
        check(f"integrity tests of {name}", outcomes and failing == NOT_IN_A_RECORDED_NIGHT.get(name, set()), f"{failing}\n{text}")
        passing = sum(outcome == "PASSED" for outcome, _ in outcomes)
        print(f"integrity tests of {name}: {passing} passed, not in a recorded night: {sorted(failing)}", flush=True)


SKYPILOT_SELLERS = {"digitalocean": "do"} | {
    name: name for name in ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "seeweb", "verda")
}


def skypilot_part(root, directory, offers):
    folder = directory / "home/.sky/catalogs/v8"
    folder.parent.mkdir(parents=True)
    no_name = export("skypilot", root, folder)
    os.environ |= {"HOME": str(directory / "home"), "SKY_RUNTIME_DIR": str(directory / "home")}
    os.environ |= {"SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    try:
        from sky.catalog import common
    except ImportError:
        print("SkyPilot: skipped: skypilot is not installed")
        return
    wanted = {}
    for offer in sayable(offers, SKYPILOT_SELLERS, no_name):
        if not (offer["provider"] == "gcp" and "+" in offer["instance_type"]):
            of = key(offer["instance_type"], offer["region"], offer["gpu_count"], offer["pricing_model"] == "spot",
                     offer["price_usd_per_hour"])
            wanted[(SKYPILOT_SELLERS[offer["provider"]], *of)] = offer
    found = 0
    for cloud in sorted({place[0] for place in wanted}):
        table = common.read_catalog(f"{cloud}/vms.csv")
        for _, row in table.iterrows():
            accelerators = common.get_accelerators_from_instance_type_impl(table, row["InstanceType"])
            check(f"SkyPilot: {cloud} {row['InstanceType']}: cards", len(accelerators) == 1, accelerators)
            size = common.get_vcpus_mem_from_instance_type_impl(table, row["InstanceType"])
            for column, is_spot in (("Price", False), ("SpotPrice", True)):
                if row[column] != row[column]:  # There is no such price.
                    continue
                cost = common.get_hourly_cost_impl(table, row["InstanceType"], is_spot, row["Region"], None)
                place = (cloud, *key(row["InstanceType"], row["Region"], sum(accelerators.values()), is_spot, cost))
                offer = wanted.pop(place, None)
                check(f"SkyPilot: {place} is an offer", offer is not None, "no offer says so")
                if offer is not None:
                    said = (float(offer["vcpus"]), float(offer["system_memory_gib"]))
                    check(f"SkyPilot: {place}: size", size == said, f"{size}, not {said}")
                    found += 1
        listed = common.list_accelerators_impl(cloud, table, True, None, None, None, all_regions=True)
        memories = {info.accelerator_name: info.device_memory for infos in listed.values() for info in infos}
        check(f"SkyPilot: {cloud}: every card has a memory", memories and all(memories.values()), memories)
        check(f"SkyPilot: {cloud}: regions", bool(common.get_region_zones(table, False)), "none")
    check("SkyPilot: every offer is there", not wanted, f"{list(wanted)}")
    check("SkyPilot: some", found > 30, f"{found}")
    from sky import catalog

    cost = catalog.get_hourly_cost("p5.48xlarge", use_spot=False, region="us-east-1", zone=None, clouds="aws")
    listed = [offer for offer in offers if offer["instance_type"] == "p5.48xlarge" and offer["region"] == "us-east-1"]
    wanted = {o["price_usd_per_hour"] for o in listed if o["pricing_model"] == "on_demand" and o["os"] == "linux"}
    check("SkyPilot: its AWS catalogue", wanted == {cost}, f"{cost}, not {wanted}")
    print(f"SkyPilot: {found} prices", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="gpuledger-catalogues-") as directory:
        directory = Path(directory)
        root = directory / "output"
        program("collect", "--recorded", "--output", root, exits=(0, 10))
        offers = json.loads(program("offers", "--format", "json", "--limit", 1_000_000, "--output", root))
        gpuhunt_part(root, directory, offers)
        skypilot_part(root, directory, offers)
        shutil.rmtree(root)
    return summed_up("catalogues")


if __name__ == "__main__":
    sys.exit(main())
