# SPDX-License-Identifier: LGPL-3.0-or-later
"""What queries of esdm-find mean, by going through everything. A tree is ("not", TREE), ("and" or "or", TREE…) or
(…, TEST); a test says by leaf(TEST, CONTAINER, DATASET) how a dataset, or with "" or None the container, meets it."""

NO, INHERITED, OWN = 0, 1, 2  # of its container; of the dataset itself


def holds(tree, container, dataset, leaf, negated=False):
    if tree[0] == "not":
        return holds(tree[1], container, dataset, leaf, not negated)
    if tree[0] in ("and", "or"):
        parts = [holds(t, container, dataset, leaf, negated) for t in tree[1:]]
        if (tree[0] == "or") != negated:
            return max(parts)
        return NO if NO in parts else max(parts)
    met = leaf(tree[1], container, dataset)
    return met if not negated else INHERITED if met == NO else NO


def expected(tree, archive, leaf, datasets_of):
    """What esdm-find prints. `datasets_of(container)`: its datasets, and itself as "" or None."""
    for name, container in archive.items():
        for dataset in datasets_of(container):
            met = holds(tree, container, dataset, leaf)
            if met == OWN or (met and not dataset):
                yield f"{name}:/{dataset}" if dataset else name
