"""Compiled kernels: loops over rows in machine code, by Numba. Imported only where the extra `fast` is installed.

They do what the expressions of this room do, integer for integer, and nothing in them can fail on a value: every index
is kept inside its array, floats are clipped before they become integers, sums wrap modulo 2**64. A cell is a *place*:
its number plus one, so that place 0 takes the rows in no cell, which are not told.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True)  # no fast math: what a float becomes is the same everywhere

MISSING = np.int32(-(2**31))  # of a step: there is no value
LANES = 4  # of small tables of totals: rows that follow one another do not wait for the same number


@compiled
def by_table(values, table, low, size, places):  # type: ignore[no-untyped-def]
    """The cells of integers between two keys, from a table whose first and last entry are for all that lies beyond."""
    most = np.uint64(table.size - 1)
    for row in range(values.size):
        above = np.uint64(values[row] - low)  # a difference that wraps is beyond
        inner = table[min(above, most)]
        outer = places[row]
        places[row] = (outer - np.uint32(1)) * size + inner if outer > 0 and inner > 0 else 0


@compiled
def by_position(positions, size, places):  # type: ignore[no-untyped-def]
    """The cells of positions among the declared keys, -1 for none of them."""
    for row in range(positions.size):
        outer, inner = places[row], np.uint32(positions[row] + 1)
        places[row] = (outer - np.uint32(1)) * size + inner if outer > 0 and inner > 0 else 0


@compiled
def by_view(views, keys, inner_of, size, places):  # type: ignore[no-untyped-def]
    """The cells of short strings: length and bytes are in two words of 64 bits, which are compared as they are."""
    most = np.uint64(inner_of.size - 1)
    for row in range(places.size):
        first, second = views[2 * row], views[2 * row + 1]
        slot = mixed(first, second) & most
        inner = np.uint32(0)
        while inner_of[slot] > 0:
            if keys[2 * slot] == first and keys[2 * slot + 1] == second:
                inner = inner_of[slot]
                break
            slot = (slot + np.uint64(1)) & most
        outer = places[row]
        places[row] = (outer - np.uint32(1)) * size + inner if outer > 0 and inner > 0 else 0


@compiled
def mixed(first, second):  # type: ignore[no-untyped-def]
    """A hash of two words: it decides where to look, and never who is equal."""
    both = (first ^ (second * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xD6E8FEB86659FD93)
    return both ^ (both >> np.uint64(32))


@compiled
def table_of_views(views, keys, inner_of):  # type: ignore[no-untyped-def]
    """Fill the table of `by_view` with different keys; it has more slots than there are keys."""
    most = np.uint64(inner_of.size - 1)
    for key in range(views.size // 2):
        slot = mixed(views[2 * key], views[2 * key + 1]) & most
        while inner_of[slot] > 0:
            slot = (slot + np.uint64(1)) & most
        keys[2 * slot], keys[2 * slot + 1] = views[2 * key], views[2 * key + 1]
        inner_of[slot] = key + 1


@compiled
def by_bin(values, edges, closed, origin, per_unit, places):  # type: ignore[no-untyped-def]
    """The cells of numbers in half-open bins; a guess by division is off by at most one. NaN is in none."""
    size, last = np.uint32(edges.size - 1), edges[edges.size - 1]
    most = np.float64(edges.size - 2)
    for row in range(values.size):
        value = values[row]
        guess = (value - origin) * per_unit
        guess = min(max(guess, 0.0), most) if guess == guess else 0.0
        inner = np.uint32(guess)
        inner -= np.uint32(inner > 0 and value < edges[inner])
        inner += np.uint32(inner + np.uint32(1) < size and value >= edges[inner + np.uint32(1)])
        outer = places[row]
        inside = value >= edges[0] and (value < last or (closed and value == last))
        places[row] = (outer - np.uint32(1)) * size + inner + np.uint32(1) if outer > 0 and inside else 0


@compiled
def to_steps(values, per_step, lower, upper, steps):  # type: ignore[no-untyped-def]
    """Values on the grid: scaled, clipped, rounded to nearest; NaN is missing. The number of these."""
    missing = 0
    for row in range(values.size):
        value = np.float64(values[row])  # an integer becomes the nearest float, as everywhere
        scaled = min(max(value * per_step, lower), upper) if value == value else 0.0
        steps[row] = np.int32(math.floor(scaled + 0.5)) if value == value else MISSING
        missing += value != value
    return missing


@compiled
def to_share(steps, lower, length, bits):  # type: ignore[no-untyped-def]
    """The place of each step between the bounds, in whole steps of 2**-bits of the way: rounded down from a half more.

    A float's quotient is off by at most one, which the exact remainder shows.
    """
    factor, whole, twice = 2.0**bits / length, np.int64(2) << bits, 2 * length
    for row in range(steps.size):
        step = np.int64(steps[row])
        if step != MISSING:
            above = step - lower
            share = np.int64(np.float64(above) * factor + 0.5)
            rest = above * whole + length - share * twice
            share += np.int64(rest >= twice) - np.int64(rest < 0)
            steps[row] = np.int32(share)


@compiled
def narrowed(values, steps):  # type: ignore[no-untyped-def]
    """Integers that fit 32 bits, as they are. The number of missing ones."""
    missing = 0
    for row in range(values.size):
        steps[row] = np.int32(values[row])
        missing += steps[row] == MISSING
    return missing


@compiled
def add_rows(places, lanes, counts):  # type: ignore[no-untyped-def]
    """Count rows by place; there are `LANES` tables of counts, or one."""
    stride, whole = counts.size // lanes * (lanes > 1), places.size - places.size % LANES
    for row in range(0, whole, LANES):
        counts[places[row]] += 1
        counts[stride + places[row + 1]] += 1
        counts[2 * stride + places[row + 2]] += 1
        counts[3 * stride + places[row + 3]] += 1
    for row in range(whole, places.size):
        counts[places[row]] += 1


@compiled
def add_steps(places, steps, lanes, sums):  # type: ignore[no-untyped-def]
    """Add steps by place, of which none is missing."""
    stride, whole = sums.size // lanes * (lanes > 1), places.size - places.size % LANES
    for row in range(0, whole, LANES):
        sums[places[row]] += steps[row]
        sums[stride + places[row + 1]] += steps[row + 1]
        sums[2 * stride + places[row + 2]] += steps[row + 2]
        sums[3 * stride + places[row + 3]] += steps[row + 3]
    for row in range(whole, places.size):
        sums[places[row]] += steps[row]


@compiled
def add_present(places, steps, sums, absent):  # type: ignore[no-untyped-def]
    """Add those steps by place that are there, and count those that are not."""
    for row in range(places.size):
        there = steps[row] != MISSING
        sums[places[row]] += steps[row] if there else 0
        absent[places[row]] += not there


@compiled
def count_parts(codes, shift, counts):  # type: ignore[no-untyped-def]
    """Count the rows of each part of the units: those whose numbers agree but for their last bits."""
    for row in range(codes.size):
        counts[codes[row] >> shift] += 1


@compiled
def targets_of(codes, places, shift, ends, nowhere, targets):  # type: ignore[no-untyped-def]
    """The place of each row among those of its part; `nowhere` for rows in no cell."""
    for row in range(codes.size):
        part = codes[row] >> shift
        there = places[row] > 0
        targets[row] = ends[part] if there else nowhere
        ends[part] += there


@compiled
def send(targets, values, sent):  # type: ignore[no-untyped-def]
    """Write each row's value to its target."""
    for row in range(targets.size):
        sent[targets[row]] = values[row]


@compiled
def send_codes(targets, codes, sent):  # type: ignore[no-untyped-def]
    """Write each row's unit to its target."""
    for row in range(targets.size):
        sent[targets[row]] = np.uint32(codes[row])


@compiled
def weigh_parts(  # type: ignore[no-untyped-def]
    first, workers, ends, shift, units, places, steps, light, reach, lines, slot_of, grids, tables, sums, absent, weighed
):
    """Add what whole units add to totals, part by part: light ones row by row, others weighed by their pairs.

    `reach` is R, the shave, p (0 for infinity) and the rows that count where cells are merged (0: they are not). Of a
    unit that is not light each cell has a place in `tables`, where its rows are brought together: its number of rows,
    and the sum and the missing values of each slot. What is used of it is cleared.
    """
    most, shave, p, merged = reach
    slots, width = steps.shape[0], 1 + 2 * steps.shape[0]
    rows_of, ends_of = np.zeros(1 << shift, np.int64), np.zeros(1 << shift, np.int64)
    touched, last = np.empty(sums.shape[1], np.uint32), np.int64((1 << shift) - 1)
    for part in range(first, ends.size - 1, workers):
        start, stop = ends[part], ends[part + 1]
        order = np.empty(stop - start, np.int64)
        rows_of[:] = 0
        for row in range(start, stop):
            rows_of[np.int64(units[row]) & last] += places[row] > 0
        end = 0
        for unit in range(rows_of.size):
            ends_of[unit] = end
            end += rows_of[unit] if rows_of[unit] > light else 0
        for row in range(start, stop):
            place, unit = places[row], np.int64(units[row]) & last
            if place == 0:
                continue
            if rows_of[unit] > light:
                order[ends_of[unit]] = row
                ends_of[unit] += 1
                continue
            weighed[0, place] += 1
            for slot in range(slots):
                step = steps[slot, row]
                sums[slot, place] += step if step != MISSING else 0
                absent[slot, place] += step == MISSING
        end = 0
        for unit in range(rows_of.size):
            rows = rows_of[unit]
            if rows <= light:
                continue
            pairs = 0
            for row in order[end : end + rows]:
                place = places[row]
                base = np.int64(place) * width
                if tables[base] == 0:
                    touched[pairs] = place
                    pairs += 1
                tables[base] += 1
                for slot in range(slots):
                    step = steps[slot, row]
                    tables[base + 1 + slot] += step if step != MISSING else 0
                    tables[base + 1 + slots + slot] += step == MISSING
            end += rows
            norm = np.float64(rows)
            if p != 1.0:
                squares, largest = np.uint64(0), np.int64(0)
                for place in touched[:pairs]:
                    size = tables[np.int64(place) * width]
                    squares += np.uint64(size) * np.uint64(size)
                    largest = max(largest, size)
                norm = math.sqrt(np.float64(squares)) if p == 2.0 else np.float64(largest)
            weight = min(shave, most * shave / norm)
            if merged > 0.0 and rows > merged:
                weight = min(weight, merged * shave / np.float64(rows))
            for place in touched[:pairs]:
                base = np.int64(place) * width
                size = tables[base]
                for line in range(slot_of.size):
                    whole, slot = lines[line, 0] * size, slot_of[line]
                    if slot >= 0:
                        there = size - tables[base + 1 + slots + slot]
                        whole += lines[line, 1] * there + lines[line, 2] * tables[base + 1 + slot]
                    weighed[1 + line, place] += np.int64(np.float64(whole) * (weight * grids[line]))
                tables[base : base + width] = 0


def compile_all() -> None:
    """Run each kernel on a row or none, of the types that it is used with: what is compiled is kept on disk."""
    places, steps, sums = np.ones(1, np.uint32), np.zeros(1, np.int32), np.zeros(2, np.int64)
    numbers, integers, words = np.zeros(1), np.zeros(1, np.int64), np.zeros(2, np.uint64)
    for column in (numbers, integers, words):
        column.flags.writeable = False
    one = np.uint32(1)
    by_table(integers, np.zeros(3, np.uint32), -1, one, places)
    by_position(np.zeros(1, np.int64), one, places)
    keys, inner_of = np.zeros(16, np.uint64), np.zeros(8, np.uint32)
    table_of_views(words, keys, inner_of)
    by_view(words, keys, inner_of, one, places)
    by_bin(numbers, np.array([0.0, 1.0, 2.0]), False, 0.0, 1.0, places)
    for values in (numbers, integers):
        to_steps(values, 1.0, 0.0, 1.0, steps)
    to_share(steps, 0, 1, 30)
    narrowed(integers, steps)
    add_rows(places, 1, sums)
    add_steps(places, steps, 1, sums)
    add_present(places, steps, sums, np.zeros(2, np.int64))
    targets, ends = np.zeros(1, np.int64), np.zeros(2, np.int64)
    count_parts(integers, 0, ends)
    targets_of(integers, places, 0, ends, 0, targets)
    send(targets, places, places)
    send(targets, steps, steps)
    send_codes(targets, integers, places)
    wide = np.zeros((1, 2), np.int64)
    lines, slots, grids = np.zeros((1, 3), np.int64), np.zeros(1, np.int64), np.ones(1)
    weighed, reach = np.zeros((2, 2), np.int64), (1.0, 1.0, 1.0, 0.0)
    weigh_parts(
        0, 1, np.array([0, 1]), 0, places, places, steps.reshape(1, 1), 1.0, reach, lines, slots, grids, np.zeros(6, np.int64),
        wide, wide, weighed,
    )
