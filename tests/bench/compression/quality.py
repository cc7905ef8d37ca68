# SPDX-License-Identifier: LGPL-3.0-or-later
"""What became of a field, in the measures of ClimateBenchPress and SDRBench."""

import numpy

LEVELS = 256  # of grey, as DSSIM has them
WINDOW, SIGMA = 11, 1.5
SMALL = 1e-8
SLICES = 4  # of the slow axes, spread evenly: enough for means


def planes(values, is_data):
    """Two-dimensional slices of the two fastest axes, and which of their points are data."""
    shape = values.shape if values.ndim > 1 else (1, values.size)
    values = values.reshape(-1, *shape[-2:])
    is_data = is_data.reshape(values.shape)
    chosen = numpy.unique(numpy.linspace(0, len(values) - 1, SLICES).astype(int))
    return [(i, values[i].astype(float), is_data[i]) for i in chosen]


def smooth(image):
    """A Gaussian window of 11 x 11 points; sums, not means, where it lies across the edge."""
    at = numpy.arange(WINDOW) - WINDOW // 2
    window = numpy.exp(-at ** 2 / (2 * SIGMA ** 2))
    window /= window.sum()
    for axis in (0, 1):
        padded = numpy.pad(image, [(WINDOW // 2,) * 2 if a == axis else (0, 0) for a in (0, 1)])
        image = sum(w * numpy.take(padded, range(k, k + image.shape[axis]), axis)
                    for k, w in enumerate(window))
    return image


def dssim(before, after, is_data):
    """Structural similarity of floating-point data (Baker et al. 2023): both are scaled to 0 ... 1 by
    their common range and rounded to 256 levels; missing points have no weight. 1: no difference."""
    if not is_data.any():
        return 1.0
    both = numpy.concatenate([before[is_data], after[is_data]])
    low, high = both.min(), both.max()
    if not high > low:
        return 1.0
    weight = smooth(is_data.astype(float))
    weight = numpy.where(weight > 0, weight, 1)

    def mean(a):
        return smooth(numpy.where(is_data, a, 0)) / weight

    x, y = (numpy.round(numpy.where(is_data, (a - low) / (high - low), 0) * (LEVELS - 1)) / (LEVELS - 1)
            for a in (before, after))
    mx, my = mean(x), mean(y)
    vx, vy = mean(x * x) - mx * mx, mean(y * y) - my * my
    cov = mean(x * y) - mx * my
    found = ((2 * mx * my + SMALL) * (2 * cov + SMALL)
             / ((mx ** 2 + my ** 2 + SMALL) * (vx + vy + SMALL)))
    edge = WINDOW // 2
    inner = numpy.zeros_like(is_data)
    inner[edge:-edge or None, edge:-edge or None] = True
    chosen = is_data & inner if (is_data & inner).any() else is_data
    return float(found[chosen].mean())


def spectral_error(before, after, is_data):
    """Largest relative change of the power of a wavenumber, along the fastest axis and as the mean of
    all rows, among those that together have 99.9 % of the variance. Missing points are 0 in both."""
    x, y = (numpy.where(is_data, a - before[is_data].mean(), 0) for a in (before, after))
    px, py = ((abs(numpy.fft.rfft(a, axis=-1)) ** 2).mean(axis=0)[1:] for a in (x, y))
    if px.size == 0 or not px.sum() > 0:
        return 0.0
    order = numpy.argsort(-px)
    count = int(numpy.searchsorted(numpy.cumsum(px[order]) / px.sum(), 0.999)) + 1
    chosen = order[:count]
    return float((abs(py[chosen] - px[chosen]) / px[chosen]).max())


def of_planes(field, again):
    """Means over slices: DSSIM and spectral error."""
    shape = [n for n in field.shape if n > 1] or [1]
    is_data = field.is_data.reshape(shape)
    found = []
    for (_, x, inside), (_, y, _) in zip(planes(field.values.reshape(shape), is_data),
                                         planes(again.reshape(shape), is_data)):
        if inside.any():
            y = numpy.where(inside, y, 0)
            found.append((dssim(x, y, inside), spectral_error(x, y, inside)))
    similar, spectral = zip(*found) if found else ((1.0,), (0.0,))
    return sum(similar) / len(similar), sum(spectral) / len(spectral)


def autocorrelation(error):
    """Of errors and those one point further: 0 of noise."""
    error = error - error.mean()
    power = float((error * error).mean())
    return float((error[1:] * error[:-1]).mean()) / power if power > 0 and error.size > 1 else 0.0


def of(field, again):
    """All of them; shares are of the range of the field."""
    flat = numpy.asarray(again).reshape(-1)
    x, y = (a.reshape(-1)[field.is_data].astype(float) for a in (field.values, flat))
    error = y - x
    span = field.range or 1.0
    noise = float((error ** 2).mean())
    similar, spectral = of_planes(field, flat)
    return {"psnr": float(20 * numpy.log10(span) - 10 * numpy.log10(noise)) if noise > 0 else None,
            "dssim": similar, "spectral_error": spectral,
            "largest_error": float(abs(error).max()) / span,
            "mean_change": float(error.mean()) / span,
            "deviation_change": float(y.std() - x.std()) / span,
            "extremes_change": float(max(abs(y.min() - x.min()), abs(y.max() - x.max()))) / span,
            "autocorrelation": autocorrelation(error)}
