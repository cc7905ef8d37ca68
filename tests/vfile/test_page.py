#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The page of esdm-serve in a browser: search, counts, views, a picture with its slider and series, storage; hostile values."""

import urllib.parse

import cftime
import netCDF4
import numpy as np

from browser import browsing
from esdmtest import Site, expect, main, run, tool
from served import serving

HOSTILE = '<script>document.title="harmed"</script>"&\'><img src=x onerror=alert(1)>'
TIMES, LATS, LONS = 6, 18, 36


def value(t, y, x):
    return 250.0 + t + 0.5 * y + 0.25 * x


def make(path, first, **attributes):
    with netCDF4.Dataset(path, "w") as d:
        for name, length in (("time", None), ("lat", LATS), ("lon", LONS)):
            d.createDimension(name, length)
        for name, units in (("time", "hours since 2000-02-28 12:00"), ("lat", "degrees_north"), ("lon", "degrees_east")):
            d.createVariable(name, "f8", (name,)).units = units
        d["time"].calendar = "noleap"
        d["lat"][:] = -85 + 10 * np.arange(LATS)
        d["lon"][:] = 5 + 10 * np.arange(LONS)
        ts = d.createVariable("ts", "f8", ("time", "lat", "lon"), chunksizes=(2, LATS, LONS))
        ts.units = "K"
        ts.note = HOSTILE
        ts.limits = np.array([1e20, 0.1, 273.15], "f4")
        ts.long_name = "Surface temperature"
        d["time"][:] = first + 24 * np.arange(TIMES)
        ts[:] = value(*np.indices((TIMES, LATS, LONS)))
        ts[:, 9, 20:22] = np.ma.masked  # land
        height = d.createVariable("height", "f4", ("lat", "lon"))
        height.units = "m"
        height[:] = np.arange(LATS * LONS).reshape(LATS, LONS)
        ts.coordinates = "height nowhere"
        d.setncatts(attributes)


def fill(site):
    archive = {"mip_era": "CMIP6", "activity_id": "CMIP", "institution_id": "I", "experiment_id": "historical",
               "variant_label": "r1", "table_id": "Amon", "variable_id": "ts", "grid_label": "gn"}
    for name, first, model in (("a", 0, "ONE"), ("b", 24 * TIMES, "ONE"), ("c", 0, "TWO")):
        make(site.file(f"{name}.nc"), first, source_id=model, title=HOSTILE, **archive)
        run([tool("esdm-cp"), "--accuracy", "ts: abs=0.01 K", site.file(f"{name}.nc"), f"esdm://in/{name}.nc"])


def links(page):
    return page.js("[...document.querySelectorAll('#list a')].map(a => a.firstChild.textContent)")


def search_and_counts(page):
    page.wait("document.querySelectorAll('#list a').length == 3")
    expect(page.js("!$('hint').hidden && $('container').hidden"), "nothing says what to do first")
    page.js("$('search').value = 'b.nc'; $('search').oninput()")
    page.wait("document.querySelectorAll('#list a').length == 1")
    page.js("$('search').value = ''; $('search').oninput(); $('facets').open = true")
    page.wait("document.querySelector('[data-facet=source_id]')")
    told = page.js("[...document.querySelectorAll('[data-facet=source_id]')].map(b => b.textContent)")
    expect(told == ["ONE 2", "TWO 1"], f"counts: {told}")
    page.js("document.querySelector('[data-facet=source_id]').click()")
    page.wait("[...document.querySelectorAll('#list a')].some(a => a.textContent.startsWith('all of these'))")
    expect(links(page) == ["in/a.nc", "in/b.nc", "all of these as one dataset"], f"narrowed: {links(page)}")
    expect(page.js("$('search').value") == ':source_id = "ONE"', "the search says what was chosen")
    page.js("document.querySelectorAll('#list a')[2].click()")
    page.wait("$('structure').textContent.includes('time = UNLIMITED ; // (12 currently)')")
    page.js("$('search').value = 'source_id = '; $('search').oninput()")
    page.wait("$('message').textContent.includes('column')")


def click(page, row, column):
    page.js("{ const b = $('map').getBoundingClientRect(), at = (n, i) => (i + 0.5) / n; $('map').dispatchEvent(new MouseEvent('click', "
            f"{{clientX: b.left + b.width * at({LONS}, {column}), clientY: b.top + b.height * at({LATS}, {LATS - 1 - row})}})); }}")


def narrow(page):
    """Nothing is cut off on a phone."""
    page.call("Emulation.setDeviceMetricsOverride", width=380, height=800, deviceScaleFactor=1, mobile=True)
    page.wait("innerWidth <= 420")
    told = page.js("['map', 'bar', 'sliders', 'series', 'facts'].filter(id => $(id).getBoundingClientRect().right > 381)")
    expect(told == [], f"wider than the window: {told}")
    page.call("Emulation.clearDeviceMetricsOverride")
    page.wait("innerWidth > 1000")


def picture(page, site):
    page.js("location.hash = '#in%2Fa.nc/%2Fts'")
    page.wait("document.body.dataset.drawn == '/ts' && $('name').textContent == 'in/a.nc'")
    expect(page.js("$('caption').textContent") == "/ts Surface temperature [K]", page.js("$('caption').textContent"))
    expect("ts:limits = 1e+20, 0.1, 273.15 ;" in page.js("$('structure').textContent"), page.js("$('structure').textContent.match(/ts:limits[^;]*/)[0]"))
    expect(abs(page.js("$('bar').height - $('map').clientHeight")) <= 2, "the bar is not as high as the map")
    expect("2000-02-28 12:00" in page.js("$('sliders').textContent"), page.js("$('sliders').textContent"))
    page.js("{ const s = document.querySelector('#sliders input'); s.value = 2; s.oninput(); }")
    page.wait("$('sliders').textContent.includes('3 of 6: 2000-03-02 12:00')")  # the calendar has no 29th
    page.wait("$('bar') && !$('coast').hidden")
    dark = page.js("$('coast').getContext('2d').getImageData(0, 0, $('coast').width, $('coast').height).data.some(v => v)")
    expect(dark, "no coastline was drawn")
    click(page, 9, 20)
    page.wait("$('value').textContent.startsWith('none at ') && $('series').hidden")
    click(page, 4, 7)
    page.wait("!$('series').hidden")
    told = page.js("$('value').textContent")
    number, where = told.split(" at ")
    number, units = number.split()
    expect(abs(float(number) - value(2, 4, 7)) <= 0.011 and units == "K" and "lat = -45 degrees_north, lon = 75 degrees_east" in where, told)
    expect(where.endswith(f", height = {4 * LONS + 7} m"), told)
    shown = page.call("Page.captureScreenshot")["data"]
    site.file("page.png.base64").write_text(shown)
    expect(len(shown) > 10000, "nothing is seen")
    narrow(page)


def dates(page):
    """As cftime has them."""
    for calendar in ("standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"):
        for units in ("days since 1850-01-01 00:00:00", "hours since 1582-10-01", "days since 0001-01-01", "days since 2000-02-28"):
            for value in (0, 1, 59, 60, 365, 366, 54788, 300000, 730000):
                wanted = cftime.num2date(value, units, calendar).strftime("%Y-%m-%d %H:%M").replace(" 00:00", "")
                told = page.js(f"dateWriter({{attributes: [{{name: 'units', values: '{units}'}}, "
                               f"{{name: 'calendar', values: '{calendar}'}}]}})({value})")
                expect(told.lstrip("0") == wanted.strip().lstrip("0"), f"{value} {units}, {calendar}: {told} for {wanted}")


def storage(page):
    page.js("document.querySelector('[data-storage=\"/ts\"]').click()")
    page.wait("document.body.dataset.storage == '/ts'")
    text = page.js("$('storage').innerText")
    expect("absolute_tolerance=0.01" in text and "times smaller" in text, text)
    rows = page.js("[...document.querySelectorAll('#storage-table tr')].map(r => [...r.cells].map(c => c.textContent))")
    expect(rows[1][:2] == ["disk", "1"] and rows[1][3] == "30.4 KiB" and rows[3][0] and rows[3][1] == "1", f"{rows}")
    middle = page.js("[...$('fragments').getContext('2d').getImageData(180, 100, 1, 1).data].join()")
    expect(middle == "86,180,233,255", f"the map of fragments has {middle} in its middle")


def views(page):
    page.js("[...document.querySelectorAll('#views a')].find(a => a.textContent == 'cmip6:').click()")
    for level in ("CMIP6", "CMIP", "I", "ONE", "historical", "r1", "Amon", "ts", "gn"):
        page.wait(f"[...document.querySelectorAll('#list a')].some(a => a.firstChild.textContent == '{level}')")
        page.js(f"[...document.querySelectorAll('#list a')].find(a => a.firstChild.textContent == '{level}').click()")
    page.wait("document.querySelectorAll('#list a').length == 3")
    expect(links(page) == ["all as one dataset", "in/a.nc", "in/b.nc"], f"{links(page)}")
    page.js("document.querySelector('#list a').click()")
    page.wait("$('structure').textContent.includes('time = UNLIMITED ; // (12 currently)')")
    expect(page.js("$('place').textContent").startswith("cmip6: / CMIP6 / CMIP"), page.js("$('place').textContent"))


def test_the_page():
    with Site() as site:
        fill(site)
        with serving(site) as (port, _), browsing(site.file("chromium")) as page:
            if page is None:
                return
            page.open(f"http://localhost:{port}/")
            search_and_counts(page)
            dates(page)
            picture(page, site)
            storage(page)
            views(page)
            name = urllib.parse.quote("in/a.nc", safe="")
            page.open(f"http://localhost:{port}/?{name}#{name}")
            page.wait("$('structure').textContent.includes('onerror=alert')")
            expect(page.js("document.title") == "ESDM" and page.js("document.querySelectorAll('img').length") == 0, "harmed")
            wrong = [p for p in page.problems if "400" not in str(p)]
            expect(not wrong, f"scripts failed: {wrong}")


main(test_the_page)
