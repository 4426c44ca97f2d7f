/// The polynomials of codegen/math; written by fit.py, not by hand. Coefficients stand lowest order first.
#pragma once

#include <cstdint>

namespace tensmith::math {

/// pi / 2 as a sum of three f32.
inline constexpr double kHalfPi32[] = {1.57079637, -4.37113883e-08, -1.71512451e-15};

/// 1 / (2 pi) * 2^-7 as a fraction, words of 64 bits, first word first.
inline constexpr uint64_t kTurn32[] = {0x00517cc1b727220a, 0x94fe13abe8fa9a6e, 0xe06db14acc9e21c8, 0x20ff28b1d5ef5de2};

/// (e^r - 1 - r) / r^2 on [-0.34661, 0.34661], relative error 2^-28.3.
inline constexpr double kExp[] = {0.49999994, 0.166665211, 0.0416682549, 0.00836866256, 0.00138214673};

/// (e^r - 1 - r) / r^2 on [-0.34661, 0.34661], relative error 2^-23.2.
inline constexpr double kExpFast[] = {0.499992311, 0.166671127, 0.0418901891, 0.00831268076};

/// (log(1 + f) - f + f^2/2) / f^3 on [-0.29289, 0.41421], relative error 2^-27.4.
inline constexpr double kLog[] = {
    0.333333313, -0.250008196, 0.200012416, -0.166234106, 0.142015859, -0.131595999, 0.127621442, -0.0763635635};

/// (log(1 + f) - f + f^2/2) / f^3 on [-0.29289, 0.41421], relative error 2^-24.9.
inline constexpr double kLogFast[] = {
    0.333339095, -0.250013351, 0.199631006, -0.165776521, 0.149145067, -0.14266935, 0.0870041773};

/// (sin(x) / x - 1) / t, t = x^2, on [0.0, 0.62427], relative error 2^-27.8.
inline constexpr double kSin[] = {-0.166666538, 0.00833210628, -0.000195078828};

/// (cos(x) - 1 + t/2) / t^2, t = x^2, on [0.0, 0.62427], relative error 2^-32.9.
inline constexpr double kCos[] = {0.0416666456, -0.00138873036, 2.44311959e-05};

/// tanh takes the next polynomial below this, the one after it from here on.
inline constexpr double kTanhSplit[] = {1};

/// (tanh(x) / x - 1) / t, t = x^2, on [0.0, 1.0], relative error 2^-27.7.
inline constexpr double kTanhNear[] = {
    -0.333332956, 0.133323461, -0.0538798459, 0.0214866754, -0.00794600975, 0.00230122241, -0.000358394725};

/// -2 / (1 + e) on [0.0, 0.13535], relative error 2^-27.8.
inline constexpr double kTanhFar[] = {-1.99999857, 1.99984467, -1.99452174, 1.91458035, -1.37121987};

/// erf takes the next polynomial below this, the one after it from here on.
inline constexpr double kErfSplit[] = {0.90625};

/// erf(x) / x - 1, t = x^2, on [0.0, 0.82129], relative error 2^-26.1.
inline constexpr double kErfNear[] = {
    0.128379151, -0.376125038, 0.112819217, -0.026770493, 0.00499895914, -0.000602079963};

/// Where the next polynomial starts.
inline constexpr double kErfFarStart[] = {0.899658203};

/// log2(erfc(start + z)) on [0.0065918, 3.1003], relative error 2^-29.0.
inline constexpr double kErfFar[] = {
    -2.29857755, -3.56499505, -1.1974051, -0.0659943521, 0.0157920755, -0.00289204041, 0.000289059011};

/// -2^f on [-0.5001, 0.5001], relative error 2^-28.3.
inline constexpr double kMinusExp2[] = {
    -1, -0.693147182, -0.240226477, -0.0555035993, -0.00961850584, -0.00133908121, -0.000153264977};

/// log2(erfc(a)) / a on [0.0, 3.92], relative error 2^-24.7.
inline constexpr double kErfFast[] = {
    -1.62790704, -0.918444693, -0.148321599, 0.0278524011, -0.000265540351, -0.00182773755, 0.000557157618,
    -5.97207072e-05};

/// (1 - 2^f) / f on [-0.5001, 0.5001], relative error 2^-26.2.
inline constexpr double kMinusExp2M1[] = {
    -0.693147182, -0.240226492, -0.0555036739, -0.00961831026, -0.00133873848, -0.000153826259};

/// 1 / d on [1.0, 2.0], relative error 2^-9.2.
inline constexpr double kInverse[] = {2.82842588, -2.93934894, 1.33102787, -0.221838251};

}  // namespace tensmith::math
