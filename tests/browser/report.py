"""Opens pages of `gpuledger report` in a browser, as a person would, and looks at what comes of them.

Needs `chromium`, `chromium-driver` and what `requirements.txt` names. `GPULEDGER_BIN` names the program; without it,
`target/debug/gpuledger`. `GPULEDGER_SHOTS` names a folder for pictures of the pages, if they are wanted. Asks no network.
"""

import base64
import csv
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checks import HOUSE, check, program, same, summed_up

SHOTS = os.environ.get("GPULEDGER_SHOTS")

# Longest time from asking for the page of twenty thousand offers to its first rows, and to the rows of a search.
OPEN_SECONDS_MAX = 2.0
SEARCH_SECONDS_MAX = 1.0
BYTES_MAX = 6_000_000

WIDTHS = (1280, 390)
THEMES = ("light", "dark")

# ---------------------------------------------------------------------------------------------------------------------------
# Datasets.


MACHINES = {
    "Standard_NC4as_T4_v3": 0.53, "Standard_NC6s_v3": 3.06, "Standard_NC12s_v3": 6.12, "Standard_NC24ads_A100_v4": 3.67,
    "Standard_NC48ads_A100_v4": 7.35, "Standard_ND96amsr_A100_v4": 32.77, "Standard_NC40ads_H100_v5": 6.98,
    "Standard_ND96isr_H100_v5": 98.32, "Standard_ND96isr_H200_v5": 84.8, "Standard_ND96isr_MI300X_v5": 48.0,
    "Standard_NV36ads_A10_v5": 3.2,
}


def many_offers(folder, regions):
    """Pages of one provider with 33 offers in each of so many regions that there are not."""
    folder = folder / "azure"
    folder.mkdir(parents=True)
    for region in range(regions):
        name, items = f"region-{region:03}", []
        for place, (machine, usd) in enumerate(MACHINES.items()):
            short = machine.removeprefix("Standard_").replace("_", "")
            for kind, share in (("", 1), (" Spot", 0.4), (" Low Priority", 0.45)):
                price = round(usd * share * (1 + (region * 7 + place * 3) % 50 / 100), 5)
                items.append({
                    "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
                    "armRegionName": name, "location": name, "effectiveStartDate": "2023-12-01T00:00:00Z",
                    "meterId": f"{region}-{place}{kind}", "meterName": f"{short}{kind}", "productId": f"P{place}",
                    "skuId": f"P{place}/{region}{kind}", "productName": f"Virtual Machines {short} Series",
                    "skuName": f"{short}{kind}", "serviceName": "Virtual Machines", "serviceId": "DZH313Z7MMC8",
                    "serviceFamily": "Compute", "unitOfMeasure": "1 Hour", "type": "Consumption", "isPrimaryMeterRegion": True,
                    "armSkuName": machine,
                })
        page = {"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail", "Items": items,
                "NextPageLink": None, "Count": len(items)}
        (folder / f"retail-{name}-0001.json").write_text(json.dumps(page))


MAPPING = """
name = 'kept'
source = 'kept'
homepage = 'https://kept.example'
version = 1
form = 'csv'
[night]
column = 'day'
[seller]
column = 'seller'
[machine]
type = 'machine'
[gpu]
label = 'card'
count = 'cards'
[terms]
os = 'linux'
[[price]]
column = 'usd'
currency = 'USD'
unit = 'hour'
per = 'instance'
pricing_model = 'on_demand'
"""


def nights(output, scratch):
    """A history that somebody kept, with gaps, and three nights: two of files with other prices, and one of recordings."""
    (scratch / "kept.toml").write_text(MAPPING)
    lines = ["day,seller,machine,card,cards,usd"]
    for day in [*range(1, 9), *range(12, 20), 23]:
        lines += [f"2026-10-{day:02},shop,a,{card},1,{usd + day / 50:.2f}" for card, usd in
                  (("H100 SXM", 2.5), ("H200 SXM", 3.5), ("B200", 5.5), ("L40S", 1.1))]
    (scratch / "kept.csv").write_text("\n".join(lines) + "\n")
    program("import", "--mapping", scratch / "kept.toml", scratch / "kept.csv", "--output", output)
    for at, change in (("2026-10-27", ("3.99", "3.99")), ("2026-10-28", ("3.99", "3.59"))):
        for provider in ("lambda", "verda", "together", "seeweb"):
            for page in (HOUSE / "scrapers" / provider / "fixtures").glob("2026-*/*"):
                newest = max(path.name for path in page.parents[1].glob("2026-*"))
                if page.name != "receipt.toml" and page.parent.name == newest:
                    into = scratch / at / provider
                    into.mkdir(parents=True, exist_ok=True)
                    (into / page.name).write_text(page.read_text().replace(*change))
        program("collect", "--from", scratch / at, "--at", f"{at}T02:00:00Z", "--output", output, exits=(0, 10))


# ---------------------------------------------------------------------------------------------------------------------------
# The browser.


def browser(script=True):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--force-prefers-reduced-motion"):
        options.add_argument(argument)
    if not script:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def screen(driver, width, theme="light"):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 844, "deviceScaleFactor": 1 if width > 600 else 2, "mobile": width < 600})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})


def shot(driver, name, width, height=3000):
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        full = driver.execute_script("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(full, height), "scale": 1}
        png = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})["data"]
        (Path(SHOTS) / f"{name}.png").write_bytes(base64.b64decode(png))


def opened(driver, file):
    """Opens a page and gives the seconds until its rows stand there and are painted."""
    driver.get_log("browser")
    driver.get_log("performance")
    started = time.monotonic()
    driver.get(file.as_uri())
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
    return time.monotonic() - started


def quiet(driver, name, file):
    """Nothing was complained of, and nothing but the file was asked for."""
    same(f"{name}: nothing stands in the console", [entry["message"] for entry in driver.get_log("browser")], [])
    asked = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    same(f"{name}: only the file was asked for", [url for url in asked if url != file.as_uri()], [])


def rows(driver):
    """What stands in the table: a list of its rows, each a list of texts."""
    return driver.execute_script(
        "return [...document.querySelectorAll('#rows tr')].map(row => [...row.cells].map(cell => cell.innerText.trim()))")


def count(driver):
    """How many offers match, as the live region says it."""
    numbers = re.findall(r"\d+", driver.find_element(By.ID, "count").text.replace("\u202f", ""))
    return int(numbers[0]) if numbers else 0


def settled(driver, wanted):
    WebDriverWait(driver, 5, poll_frequency=0.02).until(lambda driver: wanted(driver))


# ---------------------------------------------------------------------------------------------------------------------------
# The checks.


def test_large(driver, scratch):
    many_offers(scratch / "many", 607)
    program("collect", "--from", scratch / "many", "--at", "2026-11-01T00:00:00Z", "--output", scratch / "large", exits=(0, 10))
    file = scratch / "large.html"
    program("report", "--output", scratch / "large", "--to", file)
    size = file.stat().st_size
    check("the page of twenty thousand offers is not too large", size <= BYTES_MAX, size)
    for width in WIDTHS:
        screen(driver, width)
        seconds = min(opened(driver, file) for _ in range(3))
        print(f"20,000 offers: {size:,} bytes, open at {width} px in {seconds:.2f} s", flush=True)
        check(f"it opens in time at {width} px", seconds < OPEN_SECONDS_MAX, seconds)
        quiet(driver, f"large, {width}", file)
    screen(driver, 1280)
    opened(driver, file)
    all_offers = count(driver)
    check("it has twenty thousand offers", all_offers > 20_000, all_offers)
    same("a hundred rows are shown", len(rows(driver)), 100)
    started = time.monotonic()
    driver.find_element(By.ID, "search").send_keys("h100 region-60")
    settled(driver, lambda driver: count(driver) < 100)
    seconds = time.monotonic() - started
    print(f"20,000 offers: a search by keyboard takes {seconds:.2f} s with the typing", flush=True)
    check("a search takes no time", seconds < SEARCH_SECONDS_MAX, seconds)
    # Two machines with an H100, three prices each, in the regions 600 to 606.
    same("a search finds what has all words", count(driver), 42)
    check("and nothing else", all("H100" in row[0] and row[5].startswith("region-60") for row in rows(driver)), rows(driver)[:3])
    driver.find_element(By.ID, "search").clear()
    driver.find_element(By.ID, "search").send_keys("nothing of this name")
    settled(driver, lambda driver: rows(driver) == [])
    check("it says so when nothing matches", "No offer" in driver.find_element(By.ID, "count").text)
    driver.find_element(By.CSS_SELECTOR, "#filters button[type=reset]").click()
    settled(driver, lambda driver: count(driver) == all_offers)
    driver.find_element(By.ID, "later").click()
    check("later rows come", "101" in driver.find_element(By.ID, "shown").text, driver.find_element(By.ID, "shown").text)


def test_table(driver, file):
    screen(driver, 1280)
    opened(driver, file)
    all_offers = count(driver)
    prices = lambda: [float(row[7]) for row in rows(driver) if row[7]]
    check("the cheapest come first", prices() == sorted(prices()), prices()[:5])
    head = lambda key: driver.find_element(By.CSS_SELECTOR, f"th[data-k={key}]")
    same("the order is told", head("usd").get_attribute("aria-sort"), "ascending")
    # By mouse.
    head("usd").find_element(By.TAG_NAME, "button").click()
    same("a click turns it", head("usd").get_attribute("aria-sort"), "descending")
    check("the dearest come first", prices() == sorted(prices(), reverse=True) and len(prices()) == 100, prices()[:5])
    head("memory").find_element(By.TAG_NAME, "button").click()
    same("another column takes its place", (head("memory").get_attribute("aria-sort"), head("usd").get_attribute("aria-sort")),
         ("ascending", "none"))
    memory = [float(row[2]) for row in rows(driver) if row[2]]
    check("memory is ordered as numbers", memory == sorted(memory), memory[:10])
    # By keyboard alone: the skip link, then the head of a column.
    driver.get(file.as_uri())
    active = lambda: driver.switch_to.active_element
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    same("the first stop skips to the prices", active().get_attribute("href").split("#")[-1], "offers")
    check("it is seen when it has the focus", active().rect["x"] >= 0, active().rect)
    active().send_keys(Keys.ENTER)
    for _ in range(40):
        active().send_keys(Keys.TAB)
        if active().tag_name == "button" and active().find_element(By.XPATH, "..").get_attribute("data-k") == "provider":
            break
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth")
    same("the focus is seen", outline, "solid3px")
    active().send_keys(Keys.ENTER)
    same("enter orders", head("provider").get_attribute("aria-sort"), "ascending")
    active().send_keys(Keys.SPACE)
    same("space turns it", head("provider").get_attribute("aria-sort"), "descending")
    providers = [row[3] for row in rows(driver)]
    check("providers are in order", providers == sorted(providers, key=str.lower, reverse=True), providers[:5])
    # Filters, one by one and together.
    driver.find_element(By.CSS_SELECTOR, "#filters button[type=reset]").click()
    settled(driver, lambda driver: head("usd").get_attribute("aria-sort") == "ascending")
    Select(driver.find_element(By.ID, "filter-gpu")).select_by_visible_text("H100 SXM")
    settled(driver, lambda driver: count(driver) < all_offers)
    of_gpu = count(driver)
    check("a GPU alone", {row[0] for row in rows(driver)} == {"H100 SXM"}, rows(driver)[:3])
    Select(driver.find_element(By.ID, "filter-model")).select_by_visible_text("on demand")
    settled(driver, lambda driver: count(driver) < of_gpu)
    check("with a way to buy", all(row[6].startswith("on demand") for row in rows(driver)), rows(driver)[:3])
    dearest = max(prices())
    driver.find_element(By.ID, "filter-usd").send_keys("3.5")
    settled(driver, lambda driver: max(prices()) <= 3.5)
    check("and a price at most", dearest > 3.5 and len(prices()) > 0, (dearest, prices()))
    links = driver.find_elements(By.CSS_SELECTOR, "#rows a")
    check("each row leads to its source", len(links) == len(rows(driver)), len(links))
    check("safely", all(link.get_attribute("href").startswith("http") and link.get_attribute("rel") == "noopener" for link in links))
    quiet(driver, "table", file)


def test_charts(driver, output, file):
    screen(driver, 1280)
    opened(driver, file)
    drawn = driver.execute_script("""
      return Object.fromEntries([...document.querySelectorAll('figure')].map(figure => [
        figure.querySelector('strong').textContent,
        [...figure.querySelectorAll('svg [class^=line]')].map(part => [
          part.getAttribute('class').split(' ')[0],
          part.tagName === 'circle' ? 1 : part.getAttribute('points').trim().split(' ').length])]))""")
    compared = 0
    for gpu in ("H100 SXM", "H200 SXM", "B200", "L40S"):
        if gpu not in drawn:
            continue
        printed = program("trend", "--index", gpu, "--include-imports", "--format", "csv", "--output", output)
        days = {}
        for row in csv.DictReader(io.StringIO(printed)):
            days.setdefault(row["source"], []).append(row["date"])
        runs = []
        for source, dates in days.items():
            line = "line0" if source == "collected" else "line1"
            run = 0
            for before, day in zip([None, *dates], dates):
                if before and date.fromisoformat(day) - date.fromisoformat(before) == timedelta(1):
                    run += 1
                else:
                    runs += [[line, run]] if run else []
                    run = 1
            runs.append([line, run])
        same(f"{gpu}: runs of days and their points", sorted(drawn[gpu]), sorted(runs))
        compared += len(runs)
    check("lines with gaps were compared", compared >= 8, (compared, list(drawn)))
    small = driver.execute_script("""
      return Math.min(...[...document.querySelectorAll('figure svg text')].map(text => text.getBoundingClientRect().height))""")
    check("letters of a chart can be read on a desk", small >= 11, small)
    screen(driver, 390)
    small = driver.execute_script("""
      return Math.min(...[...document.querySelectorAll('figure svg text')].map(text => text.getBoundingClientRect().height))""")
    check("and on a phone", small >= 11, small)


LOUDNESS = """
  const rgb = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => { for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor; const [, , , a = 1] = rgb(colour); if (a > 0) return rgb(colour); }
    return [255, 255, 255]; };
  let worst = [99, ''];
  for (const element of document.querySelectorAll('p, h1, h2, th, td, small, a, label, li, summary, button, time, span, caption, figcaption')) {
    if (!element.innerText || !element.getClientRects().length || element.disabled) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 120)];
  }
  return worst;"""


def test_looks(driver, files):
    for lang, file in files.items():
        for width in WIDTHS:
            for theme in THEMES:
                name = f"{lang}-{width}-{theme}"
                screen(driver, width, theme)
                opened(driver, file)
                wide = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
                check(f"{name}: the page is no wider than the screen", wide[0] <= wide[1], wide)
                ratio, where = driver.execute_script(LOUDNESS)
                check(f"{name}: every text stands out", ratio >= 4.5, (ratio, where))
                lines = driver.execute_script("""
                  return [...document.querySelectorAll('figure polyline[class^=line]')].map(line => getComputedStyle(line).stroke)""")
                check(f"{name}: lines have a colour of the page's style", all("rgb" in line for line in lines), lines)
                quiet(driver, name, file)
                shot(driver, name, width)
        for width in (320, 700, 1000, 1260, 1271, 1440):
            screen(driver, width)
            wide = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            check(f"{lang}: no wider than a screen of {width}", wide[0] <= wide[1], wide)
    screen(driver, 1280, "light")
    opened(driver, files["en"])
    colour = lambda: driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    light = colour()
    Select(driver.find_element(By.ID, "theme")).select_by_value("dark")
    dark = colour()
    check("the switch changes the theme", light != dark, (light, dark))
    screen(driver, 1280, "dark")
    same("the switch gives what the device gives", colour(), dark)
    Select(driver.find_element(By.ID, "theme")).select_by_value("light")
    same("and turns it back", colour(), light)


STRUCTURE = """
  const all = selector => [...document.querySelectorAll(selector)];
  const named = element => element.labels?.length || element.getAttribute('aria-label') || element.innerText;
  return {
    'tables without a caption': all('table:not(:has(> caption))').length,
    'heads without a scope': all('th:not([scope])').length,
    'controls without a name': all('input, select, button').filter(element => !named(element)).length,
    'links without a name': all('a').filter(element => !element.getAttribute('aria-label') && !element.textContent.trim()).length,
    'links elsewhere than to the web': all('a').filter(a => !/^(#|https?:)/.test(a.getAttribute('href'))).length,
    'links that can reach back': all('a[target]').filter(a => !a.rel.includes('noopener')).length,
    'ids twice': all('[id]').length - new Set(all('[id]').map(element => element.id)).size,
    'pictures that are neither named nor hidden': all('svg:not([aria-hidden]):not([aria-label])').length,
    'first headings other than one': all('h1').length - 1,
    'cells without a role': all('.cards td:not([role]), .cards th:not([role])').length,
    'live regions other than one': all('[aria-live=polite]').length - 1,
    'numbers that do not stand in line': all('td.n').filter(cell => !getComputedStyle(cell).fontVariantNumeric.includes('tabular-nums')).length,
    'numbers that do not stand right': all('td.n').filter(cell => getComputedStyle(cell).textAlign !== 'right').length,
  };"""


def test_structure(driver, files):
    for lang, file in files.items():
        screen(driver, 1280)
        opened(driver, file)
        for fault, number in driver.execute_script(STRUCTURE).items():
            same(f"{lang}: {fault}", number, 0)
    chinese = driver.find_element(By.TAG_NAME, "body").text
    left = re.findall(r"\b(?:offers|provider|matches|prices|night|search)\b", chinese)
    check("no sentence of the Chinese page is English", not left, left)
    check("and it is Chinese", driver.execute_script("return document.documentElement.lang") == "zh" and "当晚" in chinese)


def test_without_script(file):
    driver = browser(script=False)
    try:
        screen(driver, 1280)
        driver.get(file.as_uri())
        body = driver.find_element(By.TAG_NAME, "body").text
        check("without a script it says what is not shown", "Without a script" in body, body[-300:])
        same("and shows the first rows", len(driver.find_elements(By.CSS_SELECTOR, "#rows tr")), 100)
        check("and no control that does nothing", not any(
            element.is_displayed() for element in driver.find_elements(By.CSS_SELECTOR, "input, select, button")))
    finally:
        driver.quit()


def main():
    if not shutil.which("chromedriver"):
        print("skipped: there is no chromedriver here")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        output = scratch / "nights"
        nights(output, scratch)
        program("collect", "--recorded", "--output", output, exits=(0, 10))
        files = {}
        for lang in ("en", "zh"):
            files[lang] = scratch / f"{lang}.html"
            program("report", "--lang", lang, "--output", output, "--to", files[lang])
        changed = scratch / "changed.html"
        program("report", "--snapshot", "2026-10-28", "--output", output, "--to", changed)
        driver = browser()
        try:
            test_table(driver, files["en"])
            test_charts(driver, output, files["en"])
            test_looks(driver, files)
            test_structure(driver, files)
            test_looks(driver, {"en": changed})
            test_looks(driver, {"en": HOUSE / "output/sample/report.html"})
            test_large(driver, scratch)
        finally:
            driver.quit()
        test_without_script(files["en"])
    return summed_up("browser")


if __name__ == "__main__":
    sys.exit(main())
