#!/usr/bin/env python3
"""Derives every polynomial of codegen/math and prints coefficients.h.

Usage: fit.py > coefficients.h      (needs mpmath; gmpy2 makes it several times faster)

Each entry is a minimax fit in 60 digits on a dense grid, weighted so that the error counts relative to the function's
value. Coefficients are rounded to their type one after the other, lowest order first, and the
remaining ones are fitted again, so that the rounding of one is compensated by the rest.
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 60

# Coefficients of each piece besides its value at the center.
ERF_TERMS = 6
TANH_TERMS = 6


def to_f32(v):
    return mpf(struct.unpack("f", struct.pack("f", float(v)))[0])


def next_f32(v, towards):
    """The f32 next to v in the direction of `towards`."""
    bits = struct.unpack("I", struct.pack("f", float(v)))[0]
    bits += 1 if (towards > v) == (v > 0) else -1
    return mpf(struct.unpack("f", struct.pack("I", bits))[0])


def to_f64(v):
    return mpf(float(v))


def cut(v, bits):
    """v with `bits` significant bits, rounded to nearest."""
    m, e = mp.frexp(v)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), e - bits)


def grid(lo, hi, count):
    """Points dense at both ends, as the extrema of a minimax error are."""
    return [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]


class Fit:
    """Minimax of weight(x) * (target(x) - sum c[k] * x^powers[k]) over the grid points."""

    def __init__(self, target, weight, powers, lo, hi, count=None):
        self.powers = list(powers)
        count = count or 60 * (len(self.powers) + 2)
        # A point of weight zero would pin the level of the error to zero.
        self.xs = [x for x in grid(mpf(lo), mpf(hi), count) if weight(x) != 0]
        self.targets = [target(x) for x in self.xs]
        self.weights = [weight(x) for x in self.xs]

    def solve(self, powers, rest):
        """Coefficients for `powers` that approximate the values `rest`; returns (coefficients, max error).

        The linear program "smallest level that bounds every weighted error" by exchange: a basis of n + 1 points with
        signs, whose convex combination of rows is zero; the worst point enters, the ratio test says which leaves.
        Unlike the exchange by alternation it needs no Haar system, which x, x^2, ... around zero is not.
        """
        n = len(powers)
        if n == 0:
            return [], max(abs(w * r) for w, r in zip(self.weights, rest))
        rows = [[w * x**p for p in powers] for x, w in zip(self.xs, self.weights)]
        values = [w * r for w, r in zip(self.weights, rest)]
        last = len(rows) - 1
        angles = [mp.pi * (i + mpf("0.3")) / (n + mpf("0.6")) for i in range(n + 1)]
        basis = sorted({round((1 - mp.cos(angle)) / 2 * last) for angle in angles})
        # Null vector of the basis rows gives the signs.
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for col, i in enumerate(basis):
            for k in range(n):
                a[k, col] = rows[i][k]
        a[n, 0] = 1
        b[n] = 1
        null = mp.lu_solve(a, b)
        signs = [1 if null[col] > 0 else -1 for col in range(n + 1)]
        for _ in range(500):
            a = mp.matrix(n + 1, n + 1)
            b = mp.matrix(n + 1, 1)
            for row, (i, s) in enumerate(zip(basis, signs)):
                for k in range(n):
                    a[row, k] = s * rows[i][k]
                a[row, n] = 1
                b[row] = s * values[i]
            solution = mp.lu_solve(a, b)
            c, level = [solution[k] for k in range(n)], solution[n]
            errors = [v - mp.fdot(c, r) for v, r in zip(values, rows)]
            worst = max(range(len(rows)), key=lambda i: abs(errors[i]))
            if abs(errors[worst]) <= abs(level) * mpf("1.0005") or worst in basis:
                break
            if level < 0:  # Turn all signs, so that the level counts upwards.
                signs = [-s for s in signs]
                continue
            one = mp.matrix(n + 1, 1)
            one[n] = 1
            enter = mp.matrix(n + 1, 1)
            sign = 1 if errors[worst] > 0 else -1
            for k in range(n):
                enter[k] = sign * rows[worst][k]
            enter[n] = 1
            weights, change = mp.lu_solve(a.T, one), mp.lu_solve(a.T, enter)
            leave = min((row for row in range(n + 1) if change[row] > 0), key=lambda row: weights[row] / change[row])
            basis[leave], signs[leave] = worst, sign
        return c, max(abs(e) for e in errors)

    def rounded(self, rnd, refits, tries=0):
        """Coefficients rounded by `rnd`, and the max weighted error. After each of the first `refits` the others are
        fitted again; for the first `tries` both neighbouring f32 are tried and the better end kept."""
        best = None

        def go(k, c, rest, got):
            nonlocal best
            if k == len(self.powers):
                worst = max(abs(w * r) for w, r in zip(self.weights, rest))
                if best is None or worst < best[1]:
                    best = got, worst
                return
            if k <= refits:
                c, _ = self.solve(self.powers[k:], rest)
            exact = c[k - min(k, refits)]
            nearest = rnd(exact)
            for value in [nearest] + ([next_f32(nearest, exact)] if k < tries else []):
                go(k + 1, c, [r - value * x**self.powers[k] for r, x in zip(rest, self.xs)], got + [value])

        go(0, None, list(self.targets), [])
        return best


def literal(v, f32):
    if f32:
        assert to_f32(v) == v, v
        text = "%.9g" % float(v)
        assert to_f32(mpf(text)) == v
    else:
        assert to_f64(v) == v, v
        text = repr(float(v))
    return text


def emit(name, coefficients, f32, comment):
    text = ", ".join(literal(c, f32) for c in coefficients)
    print(f"/// {comment}")
    line = f"inline constexpr double {name}[] = {{"
    words, lines = text.split(" "), []
    current = "    "
    for word in words:
        if len(current) + len(word) + 1 > 116:
            lines.append(current.rstrip())
            current = "    "
        current += word + " "
    lines.append(current.rstrip())
    if len(lines) == 1 and len(line) + len(text) + 3 < 118:
        print(f"{line}{text}}};\n")
    else:
        print(line)
        print("\n".join(lines) + "};\n")
    sys.stdout.flush()


def log2_of(e):
    return "2^%.1f" % float(mp.log(e, 2)) if e > 0 else "0"


def polynomial(name, what, target, weight, degree, lo, hi, f32=False, tries=0):
    # In double the rounding of all but the first coefficients is far below the error of the fit.
    fit = Fit(target, weight, range(degree + 1), lo, hi, 60 * (degree + 3) if f32 else 20 * (degree + 3))
    c, worst = fit.rounded(to_f32 if f32 else to_f64, degree if f32 else 2, tries)
    emit(name, c, f32, f"{what} on [{mp.nstr(mpf(lo), 5)}, {mp.nstr(mpf(hi), 5)}], relative error {log2_of(worst)}.")


def odd_polynomial(name, what, fn, degree, bound, f32=False):
    """(fn(x) / x - 1) / t as a polynomial in t = x^2, for |x| <= bound."""
    weight = lambda t: t * mp.sqrt(t) / fn(mp.sqrt(t)) if t else mpf(0)
    polynomial(name, f"({what} / x - 1) / t, t = x^2,", even_tail(fn, 1), weight, degree, 0, mpf(bound)**2, f32)


HALF_LN2 = mp.log(2) / 2


def exp_tail(r):
    """(e^r - 1 - r) / r^2"""
    if abs(r) < mpf("1e-9"):
        return mpf(1) / 2 + r / 6 + r * r / 24
    return (mp.expm1(r) - r) / (r * r)


def log_tail(f):
    """(log(1 + f) - f + f^2/2) / f^3"""
    if abs(f) < mpf("1e-9"):
        return mpf(1) / 3 - f / 4 + f * f / 5
    return (mp.log1p(f) - f + f * f / 2) / f**3


def even_tail(fn, scale):
    """(fn(x) / x - scale) / t with t = x^2, as a function of t; for odd functions with fn'(0) = scale."""
    taylor = mp.taylor(fn, 0, 9)

    def tail(t):
        if t < mpf("1e-12"):
            if taylor[1] != scale and t > 0:
                return (taylor[1] - scale) / t
            return taylor[3] + taylor[5] * t + taylor[7] * t * t
        x = mp.sqrt(t)
        return (fn(x) / x - scale) / t
    return tail


def cos_tail(t):
    """(cos(x) - 1 + t/2) / t^2"""
    if t < mpf("1e-12"):
        return mpf(1) / 24 - t / 720 + t * t / 40320
    return (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2


def erf_over_x(t):
    return mp.erf(mp.sqrt(t)) / mp.sqrt(t) if t > mpf("1e-40") else 2 / mp.sqrt(mp.pi)


def log_odd(w):
    """(atanh(s) / s - 1 - w/3) / w^2, w = s^2"""
    if w < mpf("1e-14"):
        return mpf(1) / 5 + w / 7 + w * w / 9
    return (mp.atanh(mp.sqrt(w)) / mp.sqrt(w) - 1 - w / 3) / w**2


def exp_table(name, degree, f32=False):
    wide = HALF_LN2 * mpf("1.0001")
    polynomial(name, "(e^r - 1 - r) / r^2", exp_tail, lambda r: r * r / mp.exp(r), degree, -wide, wide, f32)


def log_table(name, degree, f32=False):
    polynomial(name, "(log(1 + f) - f + f^2/2) / f^3", log_tail, lambda f: f**3 / mp.log1p(f) if f else mpf(0), degree,
               mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1, f32)


def sin_cos_tables(suffix, sin_degree, cos_degree, f32=False):
    quarter = mp.pi / 4 * (mpf("1.006") if f32 else mpf("1.0001"))
    odd_polynomial("kSin" + suffix, "sin(x)", mp.sin, sin_degree, quarter, f32)
    polynomial("kCos" + suffix, "(cos(x) - 1 + t/2) / t^2, t = x^2,", cos_tail, lambda t: t * t / mp.cos(mp.sqrt(t)),
               cos_degree, 0, quarter**2, f32)


def erf_tables(suffix, split_at, bound, near_degree, far_degree, exp2_degree, f32=False):
    polynomial("kErfNear" + suffix, "erf(x) / x - 1, t = x^2,", lambda t: erf_over_x(t) - 1,
               lambda t: 1 / erf_over_x(t), near_degree, 0, split_at**2, f32, tries=2 if f32 else 0)
    # The polynomial starts at a point where its first coefficient is a float by luck, so that close to it, where the
    # complement is large, the only error is one rounding.
    rnd = to_f32 if f32 else to_f64
    starts = [split_at + mpf(k) / 4096 for k in range(-50, 50)]
    start = min(starts, key=lambda a: abs(rnd(mp.log(mp.erfc(a), 2)) - mp.log(mp.erfc(a), 2)))
    emit("kErfFarStart" + suffix, [start], f32, "Where the next polynomial starts.")
    polynomial("kErfFar" + suffix, "log2(erfc(start + z))", lambda z: mp.log(mp.erfc(start + z), 2),
               lambda z: mp.log(2) * mp.erfc(start + z) / mp.erf(start + z), far_degree, split_at - start,
               bound - start, f32)
    polynomial("kMinusExp2" + suffix, "-2^f", lambda f: -mpf(2)**f, lambda f: mpf(2)**-f, exp2_degree, mpf("-0.5001"),
               mpf("0.5001"), f32)


def f32_tables():
    exp_table("kExp", 4, f32=True)
    exp_table("kExpFast", 3, f32=True)
    log_table("kLog", 7, f32=True)
    log_table("kLogFast", 6, f32=True)
    sin_cos_tables("", 2, 2, f32=True)
    split_note = "takes the next polynomial below this, the one after it from here on; so does kDouble."
    emit("kTanhSplit", [mpf(1)], True, "tanh " + split_note)
    odd_polynomial("kTanhNear", "tanh(x)", mp.tanh, 6, 1, f32=True)
    # 1 - tanh(a) = 2 e / (1 + e) with e = exp(-2 a).
    polynomial("kTanhFar", "-2 / (1 + e)", lambda e: -2 / (1 + e), lambda e: e, 4, 0, mp.exp(-2) * mpf("1.0001"),
               f32=True)
    split_at = mpf("0.875")
    emit("kErfSplit", [split_at], True, "erf " + split_note)
    erf_tables("", split_at, 4, 5, 6, 6, f32=True)
    # erf(a) = 1 - 2^(a R(a)) for all a; near 0 that is as accurate as 2^f - 1.
    def slope(a):
        return mp.log(mp.erfc(a), 2) / a if a > mpf("1e-20") else -2 / mp.sqrt(mp.pi) / mp.log(2)

    def slope_weight(a):
        return mp.log(2) * (mp.erfc(a) * a / mp.erf(a) if a > mpf("1e-20") else mp.sqrt(mp.pi) / 2)
    polynomial("kErfFast", "log2(erfc(a)) / a", slope, slope_weight, 7, 0, mpf("3.92"), f32=True)
    minus_exp2m1 = lambda f: (1 - mpf(2)**f) / f if f else -mp.log(2)
    polynomial("kMinusExp2M1", "(1 - 2^f) / f", minus_exp2m1, lambda f: 1 / minus_exp2m1(f), 5, mpf("-0.5001"),
               mpf("0.5001"), f32=True)
    polynomial("kInverse", "1 / d", lambda d: 1 / d, lambda d: d, 3, 1, 2, f32=True)


def emit_rows(name, rows, comment):
    """A table with one row of f32 for each coefficient and one column for each interval."""
    print(f"/// {comment}")
    print(f"inline constexpr float {name}[][{len(rows[0])}] = {{")
    for row in rows:
        words = [literal(v, True) for v in row]
        words = [w if "." in w or "e" in w else w + ".0" for w in words]
        text = ["    {"]
        for k, word in enumerate(words):
            piece = word + ("f}," if k + 1 == len(words) else "f,")
            if len(text[-1]) + len(piece) > 117:
                text.append("     ")
            text[-1] += (" " if text[-1][-1] not in "{ " else "") + piece
        print("\n".join(text))
    print("};\n")
    sys.stdout.flush()


def lucky_center(fn, lo, hi):
    """An f32 close to the middle of [lo, hi] at which fn is nearly an f32, so that its value there costs no rounding."""
    with mp.workdps(18):
        middle, quarter = (lo + hi) / 2, (hi - lo) / 4
        for bits in range(30, 24, -1):
            for k in range(4000):
                c = to_f32(middle + quarter * (k if k % 2 else -k) / 4000)
                value = fn(c)
                if abs(to_f32(value) - value) < value * mpf(2)**-bits:
                    return c
    raise ValueError("no such center")


def piecewise(name, what, fn, intervals, terms):
    """An odd function on intervals of positive a: c[0] + t (c[1] + c[2] t + ...) with t = a - center; on the one that
    holds 0: a + a (c[1] + c[2] a + ...). Rows: centers, c[0], c[1], ...; columns: intervals, None where none is."""
    rows = [[mpf(0)] * len(intervals) for _ in range(terms + 2)]
    worst = mpf(0)
    for column, interval in enumerate(intervals):
        if interval is None:
            continue
        lo, hi = (mpf(v) for v in interval)
        if lo <= 0:
            slope = mp.diff(fn, 0)
            target, weight = lambda a: (fn(a) / a if a else slope) - 1, lambda a: a / fn(a) if a else 1 / slope
        else:
            # The second piece starts at results that are small beside the step to its middle: its center lies lower.
            center = lucky_center(fn, lo, hi if lo > mpf("0.2") else lo + (hi - lo) / 2)
            first = to_f32(fn(center))
            rows[0][column], rows[1][column] = center, first
            target = lambda t: (fn(center + t) - first) / t if t else mpf(0)
            weight = lambda t: t / fn(center + t)
            lo, hi = lo - center, hi - center
        fit = Fit(target, weight, range(terms), lo, hi, 24 * (terms + 2))
        c, error = fit.rounded(to_f32, terms - 1)
        worst = max(worst, error)
        for k in range(terms):
            rows[k + 2][column] = c[k]
    emit_rows(name, rows, f"{what}, relative error {log2_of(worst)}: centers, values there, further coefficients.")


def piecewise_tables():
    step = mpf(32) / 123
    margin = mpf("1e-5")
    piecewise("kErfPieces", "erf(a), interval round(a * 3.84375)", mp.erf,
              [(max((k - mpf(1) / 2) * step - margin, 0), min((k + mpf(1) / 2) * step + margin, 4)) for k in range(16)],
              ERF_TERMS)
    # By the exponent and two more bits of a + 1.
    bounds = [mpf(2)**e * (1 + mpf(q) / 4) - 1 for e in range(4) for q in range(4)]
    pieces = [(max(lo - margin, 0), hi + margin) for lo, hi in zip(bounds, bounds[1:] + [None]) if lo < 9.5 and hi]
    pieces = [(lo, min(hi, mpf("9.5"))) for lo, hi in pieces] + [None] * (16 - len(pieces))
    piecewise("kTanhPieces", "tanh(a), interval by bits 21 to 24 of a + 1",
              mp.tanh, pieces[4:] + pieces[:4], TANH_TERMS)


def wide_tables():
    exp_table("kExpWide", 5)
    log_table("kLogWide", 11)
    sin_cos_tables("Wide", 3, 3)
    odd_polynomial("kSinhWide", "sinh(x)", mp.sinh, 3, 1)
    odd_polynomial("kAsinhWide", "asinh(x)", mp.asinh, 10, 1)
    odd_polynomial("kAtanhWide", "atanh(x)", mp.atanh, 7, mpf("0.5"))
    odd_polynomial("kAtanWide", "atan(x)", mp.atan, 10, 1)
    odd_polynomial("kAsinWide", "asin(x)", mp.asin, 6, mpf("0.5"))


def f64_tables():
    exp_table("kExp64", 9)
    log_table("kLog64", 18)
    sin_cos_tables("64", 5, 5)
    odd_polynomial("kTanhNear64", "tanh(x)", mp.tanh, 14, 1)
    polynomial("kTanhFar64", "-2 / (1 + e)", lambda e: -2 / (1 + e), lambda e: e, 10, 0, mp.exp(-2) * mpf("1.0001"))
    erf_tables("64", mpf("0.875"), mpf("5.95"), 11, 18, 11)
    emit("kThird64", split(mpf(1) / 3, 2, to_f64), False, "1/3 as a sum of two f64.")
    polynomial("kLogOdd64", "(atanh(s) / s - 1 - w/3) / w^2, w = s^2,", log_odd, lambda w: w * w, 6, 0, mpf("0.02945"))
    odd_polynomial("kSinh64", "sinh(x)", mp.sinh, 6, 1)
    odd_polynomial("kAsinh64", "asinh(x)", mp.asinh, 18, 1)
    odd_polynomial("kAtanh64", "atanh(x)", mp.atanh, 14, mpf("0.5"))
    odd_polynomial("kAtan64", "atan(x)", mp.atan, 19, 1)
    odd_polynomial("kAsin64", "asin(x)", mp.asin, 12, mpf("0.5"))


def split(value, parts, rnd):
    """value as a sum of `parts` numbers of the type, largest first."""
    result = []
    for _ in range(parts):
        result.append(rnd(value))
        value -= result[-1]
    return result


def turn_words(first_shift, count):
    """1 / (2 pi) * 2^-first_shift as a fraction in words of 64 bits."""
    with mp.workdps(64 * count // 3 + 20):
        value = int(mp.floor(mp.ldexp(1 / (2 * mp.pi), 64 * count - first_shift)))
    return [(value >> (64 * (count - 1 - k))) & (2**64 - 1) for k in range(count)]


def words(name, first_shift, count):
    text = [f"0x{w:016x}" for w in turn_words(first_shift, count)]
    lines = [", ".join(text[i:i + 5]) for i in range(0, count, 5)]
    print(f"/// 1 / (2 pi) * 2^-{first_shift} as a fraction, words of 64 bits, first word first.")
    print(f"inline constexpr uint64_t {name}[] = {{\n    " + ",\n    ".join(lines) + "};\n")


def constants():
    high = cut(mp.log(2), 15)
    emit("kLn2Parts32", [high, to_f32(mp.log(2) - high)], True, "ln 2 as a sum; the first part has 15 bits.")
    high = cut(mp.log(2), 42)
    parts = [high] + split(mp.log(2) - high, 2, to_f64)
    emit("kLn2Parts64", parts, False, "ln 2 as a sum; the first part has 42 bits.")
    emit("kHalfPi32", split(mp.pi / 2, 3, to_f32), True, "pi / 2 as a sum of three f32.")
    emit("kHalfPi64", split(mp.pi / 2, 3, to_f64), False, "pi / 2 as a sum of three f64.")
    words("kTurn32", 7, 4)
    words("kTurn64", 26, 19)


def main():
    print("""/// The polynomials of codegen/math; written by fit.py, not by hand. Coefficients stand lowest order first.
#pragma once

#include <cstdint>

namespace tensmith::math {
""")
    constants()
    f32_tables()
    piecewise_tables()
    wide_tables()
    f64_tables()
    print("}  // namespace tensmith::math")


if __name__ == "__main__":
    main()
