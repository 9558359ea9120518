"""Compiled kernels: loops over rows in machine code, by Numba. Imported only if the extra `fast` is installed.

They do what the expressions of `sums` do, integer for integer, and nothing in them can fail on a value: every index
stays inside its array, floats are clipped before they become integers, sums wrap modulo 2**64. A cell is a *place*: its
number plus one, so that place 0 takes the rows in no cell, which are not reported.

Strings that name units are numbered: different strings get different numbers, in any order. A keyed hash sends them to
parts, with all of their bytes. Each part is numbered by itself, so that the data in use stays in the processor's cache.
A hash decides where to look, and never which strings are equal. Its keys are random, so that nobody can choose ids that
are slow to compare. No kernel of strings calls another that takes arrays: a call counts references to each of them,
which takes longer than a hash.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True)  # no fast math: a float gives the same integer everywhere
inlined = njit(nogil=True, inline="always")

EIGHTH, HALF = np.uint64(3), np.uint64(2**32 - 1)  # a shift from bytes to words; the mask of half a word
PRIME = np.uint64(2**61 - 1)
CHUNK = np.uint64(256)  # bytes that are hashed with separate keys of 32 bits, two for a word
PLACE, PARTS, SLOTS, KEYS = 64, 65, 66, 67  # the indices of the other keys, after these, and the number of keys
NO_NAME = np.uint32(2**32 - 1)  # the length that marks a missing string; Polars counts the bytes of strings in 32 bits

MISSING = np.int32(-(2**31))  # the step of a missing value
LANES = 4  # small tables of totals, so that consecutive rows do not wait for the same number
NEAR = 2**10  # rows whose steps stay in the nearest cache


@inlined
def word_at(data, at, left):
    """Return eight bytes of a string as a word, the first lowest, with zeros after `left` bytes; keep words as such."""
    if data.itemsize == 8:
        return np.uint64(data[at >> EIGHTH])
    word = np.uint64(0)
    if at + np.uint64(8) <= np.uint64(data.size):
        for place in range(8):
            word |= np.uint64(data[at + np.uint64(place)]) << np.uint64(8 * place)
        return word if left >= np.uint64(8) else word & ((np.uint64(1) << (left << EIGHTH)) - np.uint64(1))
    for place in range(min(left, np.uint64(8))):
        word |= np.uint64(data[at + np.uint64(place)]) << np.uint64(8 * place)
    return word


@inlined
def sum_of_products(data, at, length, keys):
    """Return a keyed sum over a few words; two different strings share one with a chance of at most 2**-31 (NH)."""
    total = np.uint64(0)
    for word in range((length + np.uint64(7)) >> EIGHTH):
        done = np.uint64(word) << EIGHTH
        value = word_at(data, at + done, length - done)
        low = ((value & HALF) + keys[2 * word]) & HALF
        high = ((value >> np.uint64(32)) + keys[2 * word + 1]) & HALF
        total += low * high
    return total


@inlined
def times(one, other):
    """Return the product of two numbers below 2**61, modulo 2**61 - 1; it is at most a few times the modulus."""
    one_high, one_low = one >> np.uint64(32), one & HALF
    other_high, other_low = other >> np.uint64(32), other & HALF
    middle, low = one_high * other_low + one_low * other_high, one_low * other_low
    whole = ((one_high * other_high) << np.uint64(3)) + (middle >> np.uint64(29))
    whole += ((middle & np.uint64(2**29 - 1)) << np.uint64(32)) + (low >> np.uint64(61)) + (low & PRIME)
    return (whole & PRIME) + (whole >> np.uint64(61))


@inlined
def hashed(data, at, length, keys):
    """Return a keyed hash of a string. Nobody can choose collisions; it decides where to look, not which are equal."""
    return (
        sum_of_products(data, at, length, keys) + length
        if length <= CHUNK
        else hashed_by_chunks(data, at, length, keys)
    )


@inlined
def hashed_by_chunks(data, at, length, keys):
    """Return the hash of more than one chunk: a polynomial of the chunks' sums, at a random point."""
    whole, done = length & PRIME, np.uint64(0)
    while done < length:
        part = sum_of_products(data, at + done, min(length - done, CHUNK), keys)
        for half in (part >> np.uint64(32), part & HALF):
            whole = times(whole, keys[PLACE]) + half
            whole = (whole & PRIME) + (whole >> np.uint64(61))
        done += CHUNK
    return whole


@inlined
def spread(value, factor, bits):
    """Return `bits` bits of a hash; different hashes agree with a chance of at most 2 / 2**bits, over the factors."""
    return ((value * factor) >> np.uint64(1)) >> np.uint64(63 - bits)


@compiled
def count_names(offsets, data, missing, keys, bits, parts, counts):
    """Find the part of each string, and count the rows of each part and the words that their strings take."""
    for row in range(parts.size):
        first = np.uint64(offsets[row])
        length = np.uint64(offsets[row + 1]) - first
        if missing.size > 0 and missing[row]:
            length = np.uint64(0)
        part = spread(hashed(data, first, length, keys), keys[PARTS], bits)
        parts[row] = part
        counts[0, part] += 1
        counts[1, part] += (length + np.uint64(7)) >> EIGHTH


@compiled
def targets_of_names(parts, places, ends, nowhere, targets):
    """Do the same as `targets_of`, for parts that were found before."""
    for row in range(parts.size):
        part, there = parts[row], places[row] > 0
        targets[row] = ends[part] if there else nowhere
        ends[part] += there


@compiled
def send_names(offsets, data, missing, parts, places, targets, ends, lengths, words):
    """Write the length of each row's string to its target, and its bytes after those of its part."""
    for row in range(parts.size):
        if places[row] == 0:
            continue
        first = np.uint64(offsets[row])
        length = np.uint64(offsets[row + 1]) - first
        if missing.size > 0 and missing[row]:
            lengths[targets[row]] = NO_NAME
            continue
        lengths[targets[row]] = np.uint32(length)
        end = ends[parts[row]]
        for word in range((length + np.uint64(7)) >> EIGHTH):
            done = np.uint64(word) << EIGHTH
            words[end + word] = word_at(data, first + done, length - done)
        ends[parts[row]] = end + np.int64((length + np.uint64(7)) >> EIGHTH)


@compiled
def number_names(chosen, starts, starts_of_words, rows, places, words, keys, names):
    """Replace lengths in `names` by the numbers of strings in each part, from 0; return the largest count of a part.

    Rows and words begin where `starts` say, for each part and each thread that sent there. Strings with one hash are
    compared byte by byte, so that each has its own number.
    """
    slots = 1
    while slots < rows:
        slots *= 2
    heads, following = np.empty(slots, np.uint32), np.empty(rows, np.uint32)
    first_of, length_of = np.empty(rows, np.int64), np.empty(rows, np.uint32)
    most = np.int64(0)
    for part in range(chosen[0], starts.shape[0] - 1, chosen[1]):
        size, bits = starts[part + 1, 0] - starts[part, 0], 0
        while (1 << bits) < size:
            bits += 1
        heads[: 1 << bits] = NO_NAME
        known = np.int64(0)
        for thread in range(starts.shape[1]):
            at = starts_of_words[part, thread]
            until = starts[part, thread + 1] if thread + 1 < starts.shape[1] else starts[part + 1, 0]
            for row in range(starts[part, thread], until):
                if places[row] == 0:
                    continue
                length = names[row]
                of_bytes = np.uint64(0) if length == NO_NAME else np.uint64(length)
                slot = spread(hashed(words, np.uint64(at) << EIGHTH, of_bytes, keys), keys[SLOTS], bits)
                number = heads[slot]
                while number != NO_NAME and not alike(words, at, first_of[number], length, length_of[number]):
                    number = following[number]
                if number == NO_NAME:
                    number = np.uint32(known)
                    first_of[known], length_of[known], following[known] = at, length, heads[slot]
                    heads[slot] = number
                    known += 1
                names[row] = number
                at += np.int64((of_bytes + np.uint64(7)) >> EIGHTH)
        most = max(most, known)
    return most


@inlined
def alike(words, one, other, length, other_length):
    """Return whether two strings are the same: by their lengths, and by all of their bytes."""
    if length != other_length:
        return False
    if length != NO_NAME:
        for word in range((np.int64(length) + 7) >> 3):
            if words[one + word] != words[other + word]:
                return False
    return True


def _compile_all_of_names() -> None:
    one, two, keys = np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros(KEYS, np.uint64)
    data, missing, parts = np.zeros(8, np.uint8), np.zeros(0, np.bool_), np.zeros(1, np.uint16)
    for column in (two, data, missing):
        column.flags.writeable = False
    ends, places, numbers, words = one.copy(), np.ones(1, np.uint32), np.zeros(1, np.uint32), np.zeros(2, np.uint64)
    count_names(two, data, missing, keys, 0, parts, np.zeros((2, 1), np.int64))
    targets_of_names(parts, places, ends, 0, one)
    send_names(two, data, missing, parts, places, one, ends, numbers, words)
    starts = np.array([[0], [1]])
    number_names((0, 1), starts, starts, 1, places, words, keys, numbers)


@compiled
def by_table(values, table, low, places):
    """Find the places of integers between two keys, in a table whose first and last entries are for all others."""
    most = np.uint64(table.size - 1)
    for row in range(values.size):
        above = np.uint64(values[row] - low)  # a difference that wraps is beyond the table
        places[row] = table[min(above, most)]


@compiled
def by_view(views, keys, inner_of, places):
    """Find the places of short strings; length and bytes are two words of 64 bits, which are compared as they are."""
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
        places[row] = inner


@compiled
def by_bytes(data, ends, known, numbers, multiplier, shift, codes):
    """Find the positions of strings of at most 7 bytes, -1 for any other, in the table of `short_strings.KnownWords`.

    A string is one word: its bytes, with its length in the last byte; a longer string equals no key.
    """
    most, last = np.uint64(numbers.size - 1), np.uint64(7)
    for row in range(codes.size):
        first = np.uint64(ends[row])
        length = np.uint64(ends[row + 1]) - first
        word = word_at(data, first, length) | length << np.uint64(56)
        slot = ((word * multiplier) >> shift) & most
        codes[row] = np.int16(numbers[slot] - 1) if length <= last and known[slot] == word else np.int16(-1)


@inlined
def mixed(first, second):
    """Return a hash of two words, which decides where to look, and never which are equal.

    It mixes twice, because a product moves bits only upward: the last letters of short strings reach no low bit.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    both = (first ^ (second * golden)) * np.uint64(0xD6E8FEB86659FD93)
    both = (both ^ (both >> np.uint64(32))) * golden
    return both ^ (both >> np.uint64(32))


@compiled
def table_of_views(views, keys, inner_of):
    """Fill the table of `by_view` with distinct keys; it has more slots than there are keys."""
    most = np.uint64(inner_of.size - 1)
    for key in range(views.size // 2):
        slot = mixed(views[2 * key], views[2 * key + 1]) & most
        while inner_of[slot] > 0:
            slot = (slot + np.uint64(1)) & most
        keys[2 * slot], keys[2 * slot + 1] = views[2 * key], views[2 * key + 1]
        inner_of[slot] = key + 1


@compiled
def by_bin(values, edges, closed, origin, per_unit, places):
    """Find the places of numbers in half-open bins; a guess by division is off by at most one. NaN is in none."""
    size, last = np.uint32(edges.size - 1), edges[edges.size - 1]
    most = np.float64(edges.size - 2)
    for row in range(values.size):
        value = values[row]
        guess = (value - origin) * per_unit
        guess = min(max(guess, 0.0), most) if guess == guess else 0.0
        inner = np.uint32(guess)
        inner -= np.uint32(inner > 0 and value < edges[inner])
        inner += np.uint32(inner + np.uint32(1) < size and value >= edges[inner + np.uint32(1)])
        inside = value >= edges[0] and (value < last or (closed and value == last))
        places[row] = np.uint32(inner + np.uint32(1)) if inside else np.uint32(0)


@compiled
def combine(inner, size, places):
    """Combine the places of rows on one axis with those on an inner axis of `size` cells; 0 if either is 0."""
    for row in range(places.size):
        both = (places[row] - np.uint32(1)) * size + inner[row]
        places[row] = np.uint32(both) if (places[row] > 0) & (inner[row] > 0) else np.uint32(0)


@compiled
def to_steps(values, per_step, lower, upper, steps):
    """Convert values to steps: scale, clip, round to nearest. NaN is missing; return the number of missing values.

    Floats are rounded down as floats and become integers of 32 bits at once, so that processors do four at a time.
    """
    missing = 0
    for row in range(values.size):
        value = np.float64(values[row])  # an integer becomes the nearest float, as everywhere
        scaled = min(max(value * per_step, lower), upper)  # NaN stays NaN, and the next line does not use it
        steps[row] = np.int32(np.floor(scaled + 0.5)) if value == value else MISSING
        missing += value != value
    return missing


@compiled
def to_share(steps, lower, length, bits):
    """Convert each step to its place between the bounds, in steps of 2**-bits: add a half, round down.

    A quotient of floats is off by at most one, which the exact remainder corrects.
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
def add_rows(places, lanes, counts):
    """Count rows by place, in `LANES` tables of counts or in one."""
    stride, whole = np.uint64(counts.size // lanes * (lanes > 1)), places.size - places.size % LANES
    for row in range(0, whole, LANES):
        counts[places[row]] += 1
        counts[stride + places[row + 1]] += 1
        counts[np.uint64(2) * stride + places[row + 2]] += 1
        counts[np.uint64(3) * stride + places[row + 3]] += 1
    for row in range(whole, places.size):
        counts[places[row]] += 1


@compiled
def add_values(places, values, scale, share, lanes, sums, absent):
    """Add the steps of values by place and count missing ones, a few rows at a time, whose steps stay in the cache.

    `scale` is the argument of `to_steps`, `share` that of `to_share`; without bits, steps are added as they are.
    """
    scratch = np.empty(NEAR, np.int32)
    for first in range(0, values.size, NEAR):
        here = places[first : first + NEAR]
        steps = scratch[: here.size]
        missing = to_steps(values[first : first + NEAR], scale[0], scale[1], scale[2], steps)
        if share[2] > 0:
            to_share(steps, share[0], share[1], share[2])
        if missing > 0:
            add_present(here, steps, sums, absent)
        else:
            add_steps(here, steps, lanes, sums)


@compiled
def add_steps(places, steps, lanes, sums):
    """Add steps by place; none of them is missing."""
    stride, whole = np.uint64(sums.size // lanes * (lanes > 1)), places.size - places.size % LANES
    for row in range(0, whole, LANES):
        sums[places[row]] += steps[row]
        sums[stride + places[row + 1]] += steps[row + 1]
        sums[np.uint64(2) * stride + places[row + 2]] += steps[row + 2]
        sums[np.uint64(3) * stride + places[row + 3]] += steps[row + 3]
    for row in range(whole, places.size):
        sums[places[row]] += steps[row]


@compiled
def add_present(places, steps, sums, absent):
    """Add the present steps by place, and count the missing ones."""
    for row in range(places.size):
        there = steps[row] != MISSING
        sums[places[row]] += steps[row] if there else 0
        absent[places[row]] += not there


@compiled
def add_beyond(values, places, lower, upper, found):
    """Count the values in cells: below the bounds, above them, and present."""
    below, above, there = 0, 0, 0
    for row in range(values.size):
        value, inside = values[row], places[row] > 0
        below += inside & (value < lower)
        above += inside & (value > upper)
        there += inside & (value == value)
    found[0] += below
    found[1] += above
    found[2] += there


@compiled
def add_flags(values, lower, upper, shift, flags):
    """Mark values below the bounds, above them, and present, in three bits from `shift` on."""
    for row in range(values.size):
        value = values[row]
        bits = np.uint16(value < lower) | np.uint16(value > upper) << 1 | np.uint16(value == value) << 2
        flags[row] |= np.uint16(bits << shift)


@compiled
def check_parts(chosen, ends, units, places, flags, shape, rules, together, found):
    """Count what checks ask of whole units, part by part; `sums.unit_flags` explains these numbers.

    `shape` has the number of units within a part, the cells, the cells of one group, the bits of flags, and the number
    of rows up to which a unit breaks no rule by group. `together` has a zero for each group.
    """
    size, cells, inner, bits, few = shape
    has, rows_of, ends_of = np.empty(size, np.uint16), np.empty(size, np.int64), np.empty(size, np.int64)
    touched = np.empty(together.size + 1, np.int64)  # a group is written before it is known to be new
    for part in range(chosen[0], ends.size - 1, chosen[1]):
        first, last = ends[part], ends[part + 1]
        has[:], rows_of[:] = 0, 0
        for row in range(first, last):
            place, unit = places[row], units[row]
            if place > cells:
                has[unit] |= np.uint16(2**15)
            elif place > 0:
                has[unit] |= flags[row] | np.uint16(2**14)
                rows_of[unit] += 1
        end = 0
        for unit in range(size):
            ends_of[unit] = end
            end += rows_of[unit] if rows_of[unit] > few else 0
            if has[unit] > 0:
                add_unit(has[unit], rows_of[unit], rules, bits, found)
        if end == 0:
            continue
        order = np.empty(end, np.int64)
        for row in range(first, last):
            unit = units[row]
            if 0 < places[row] <= cells and rows_of[unit] > few:
                order[ends_of[unit]] = (np.int64(places[row]) - 1) // inner
                ends_of[unit] += 1
        for unit in range(size):
            if rows_of[unit] > few:
                add_broken(order[ends_of[unit] - rows_of[unit] : ends_of[unit]], rules, together, touched, bits, found)


@inlined
def add_unit(has, rows, rules, bits, found):
    """Add the flags of a unit, and 1 for each rule that it breaks by its total of rows."""
    for bit in range(bits):
        found[bit] += (has >> bit) & 1
    found[found.size - 2] += has >> 15
    found[found.size - 1] += 1
    for rule in range(rules.shape[0]):
        found[bits + rule] += rules[rule, 0] == 0 and rows > rules[rule, 1]


@inlined
def add_broken(groups, rules, together, touched, bits, found):
    """Add 1 for each rule that a unit breaks by its rows in groups; `groups` has the group of each row."""
    pairs, most = 0, np.int64(0)
    for group in groups:
        touched[pairs] = group
        pairs += together[group] == 0
        together[group] += 1
        most = max(most, together[group])
    for rule in range(rules.shape[0]):
        kind, limit = rules[rule, 0], rules[rule, 1]
        if kind == 1:
            found[bits + rule] += most > limit
        elif kind == 2:
            found[bits + rule] += pairs > limit
        elif kind == 3:
            squares, broken = np.uint64(0), False
            for place in range(pairs):
                size = np.uint64(together[touched[place]])
                squares += size * size
            broken = squares > np.uint64(limit)
            found[bits + rule] += broken
    for place in range(pairs):
        together[touched[place]] = 0


@compiled
def count_parts(codes, counts):
    """Count the rows of each part of the units: units whose numbers have the same last bits."""
    last = counts.size - 1
    for row in range(codes.size):
        counts[codes[row] & last] += 1


@compiled
def targets_of(codes, places, ends, nowhere, targets):
    """Find the position of each row among those of its part; `nowhere` for rows in no cell."""
    last = ends.size - 1
    for row in range(codes.size):
        part = codes[row] & last
        there = places[row] > 0
        targets[row] = ends[part] if there else nowhere
        ends[part] += there


@compiled
def send(targets, values, sent):
    """Write each row's value to its target."""
    for row in range(targets.size):
        sent[targets[row]] = values[row]


@compiled
def send_codes(targets, codes, bits, sent):
    """Write the number of each row's unit within its part to its target."""
    for row in range(targets.size):
        sent[targets[row]] = np.uint32(codes[row] >> bits)


@compiled
def weigh_parts(chosen, ends, units, places, steps, reach, lines, grids, together, alone, weighed):
    """Add what whole units add to totals, part by part: light ones row by row, others weighted by their pairs.

    `chosen` has the first part and the stride; `units` are numbers within parts. `reach` has the number of units in a
    part, the rows of a light unit, R, the shave, p (0 for infinity), and the rows that count if cells are merged (0 if
    not). For each place, `alone` and `together` have its rows, and for each slot the sum and the number of missing
    values: of all light units, and of one other unit at a time, after which `together` is cleared.
    """
    size, light, cells = np.int64(reach[0]), reach[1], weighed.shape[1] - 1  # a place beyond the cells is in none
    rows_of, ends_of = np.empty(size, np.int64), np.empty(size, np.int64)
    touched = np.empty(weighed.shape[1], np.uint32)
    for part in range(chosen[0], ends.size - 1, chosen[1]):
        first, last = ends[part], ends[part + 1]
        order = np.empty(last - first, np.uint32)
        rows_of[:] = 0
        for row in range(first, last):
            rows_of[units[row]] += 0 < places[row] <= cells
        end = 0
        for unit in range(size):
            ends_of[unit] = end
            end += rows_of[unit] if rows_of[unit] > light else 0
        for row in range(first, last):
            unit = units[row]
            if not 0 < places[row] <= cells:
                continue
            if rows_of[unit] > light:
                order[ends_of[unit]] = row - first
                ends_of[unit] += 1
            else:
                add_row(row, places[row], steps, alone)
        for unit in range(size):
            rows = rows_of[unit]
            if rows > light:
                pairs = bring_together(
                    order[ends_of[unit] - rows : ends_of[unit]], first, places, steps, together, touched
                )
                weight = weight_of(rows, touched[:pairs], together, 1 + 2 * steps.shape[0], reach)
                add_pairs(touched[:pairs], together, steps.shape[0], weight, lines, grids, weighed)


@inlined
def add_row(row, place, steps, table):
    """Add a row to its place: one row, its steps, and which are missing. Return whether it is the first there."""
    slots = steps.shape[0]
    base = np.int64(place) * (1 + 2 * slots)
    table[base] += 1
    for slot in range(slots):
        step = steps[slot, row]
        table[base + 1 + slot] += step if step != MISSING else 0
        table[base + 1 + slots + slot] += step == MISSING
    return table[base] == 1


@inlined
def bring_together(order, first, places, steps, together, touched):
    """Add up the rows of one unit by place, and list the places that it touches; return the number of these."""
    pairs = 0
    for place_in_part in order:
        row = first + np.int64(place_in_part)
        touched[pairs] = places[row]
        pairs += add_row(row, places[row], steps, together)
    return pairs


@inlined
def weight_of(rows, touched, together, width, reach):
    """Return the weight of a unit that is not light, as `weights.Reach` has it; squares are added as integers."""
    _, _, most, shave, p, merged = reach
    norm = np.float64(rows)
    if p != 1.0:
        squares, largest = np.uint64(0), np.int64(0)
        for place in touched:
            size = together[np.int64(place) * width]
            squares += np.uint64(size) * np.uint64(size)
            largest = max(largest, size)
        norm = math.sqrt(np.float64(squares)) if p == 2.0 else np.float64(largest)
    weight = min(shave, most * shave / norm)
    return min(weight, merged * shave / np.float64(rows)) if merged > 0.0 and rows > merged else weight


@inlined
def add_pairs(touched, together, slots, weight, lines, grids, weighed):
    """Add the weighted totals of a unit's pairs, each truncated toward zero, and clear what it used of `together`.

    A line is a total: multiples of the rows, the present values and the sum of a slot, which is -1 for rows alone.
    """
    width = 1 + 2 * slots
    for place in touched:
        base = np.int64(place) * width
        size = together[base]
        for line in range(grids.size):
            whole, slot = lines[line, 0] * size, lines[line, 3]
            if slot >= 0:
                there = size - together[base + 1 + slots + slot]
                whole += lines[line, 1] * there + lines[line, 2] * together[base + 1 + slot]
            weighed[line, place] += np.int64(np.float64(whole) * (weight * grids[line]))
        together[base : base + width] = 0


def compile_all() -> None:
    """Run each kernel on one row or none, with the types that it is used with; the compiled code is kept on disk."""
    places, steps, sums = np.ones(1, np.uint32), np.zeros(1, np.int32), np.zeros(2, np.int64)
    numbers, integers, words = np.zeros(1), np.zeros(1, np.int64), np.zeros(2, np.uint64)
    for column in (numbers, integers, words):
        column.flags.writeable = False
    for whole in (integers, integers.astype(np.int16)):
        whole.flags.writeable = False
        by_table(whole, np.zeros(3, np.uint32), -1, places)
    keys, inner_of = np.zeros(16, np.uint64), np.zeros(8, np.uint32)
    table_of_views(words, keys, inner_of)
    by_view(words, keys, inner_of, places)
    data, codes = np.zeros(8, np.uint8), np.zeros(1, np.int16)
    for ends in (np.zeros(2, np.int32), np.zeros(2, np.int64)):
        data.flags.writeable = ends.flags.writeable = False
        by_bytes(data, ends, keys, np.zeros(16, np.int64), np.uint64(1), np.uint64(60), codes)
    combine(places.copy(), np.uint32(1), places)
    by_bin(numbers, np.array([0.0, 1.0, 2.0]), False, 0.0, 1.0, places)
    for values in (numbers, integers):
        to_steps(values, 1.0, 0.0, 1.0, steps)
        lower, upper = (0, 1) if values is integers else (0.0, 1.0)
        add_beyond(values, places, lower, upper, np.zeros(3, np.int64))
        add_flags(values, lower, upper, 0, np.zeros(1, np.uint16))
        add_values(places, values, (1.0, 0.0, 1.0), (0, 1, 30), 1, sums, np.zeros(2, np.int64))
    to_share(steps, 0, 1, 30)
    add_rows(places, 1, sums)
    targets, ends = np.zeros(1, np.int64), np.zeros(1, np.int64)
    count_parts(integers, ends)
    targets_of(integers, places, ends, 0, targets)
    send(targets, places, places)
    send(targets, steps, steps)
    send_codes(targets, integers, 0, places)
    tables, lines, one_part = np.zeros(6, np.int64), np.zeros((1, 4), np.int64), np.array([0, 1])
    reach = (1.0, 0.0, 1.0, 1.0, 2.0, 0.0)
    weighed, grids, units = np.zeros((1, 2), np.int64), np.ones(1), np.zeros(1, np.uint32)
    flags = np.zeros(1, np.uint16)
    send(targets, flags, flags)
    check_parts(
        (0, 1), one_part, units, units, flags, (1, 1, 1, 0, 1), np.zeros((0, 2), np.int64), sums, np.zeros(2, np.int64)
    )
    weigh_parts(
        (0, 1), one_part, units, units, steps.reshape(1, 1), reach, lines, grids, tables, tables.copy(), weighed
    )
    _compile_all_of_names()
