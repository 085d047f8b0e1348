"""Goldens of sound ops: Python's wave module, numpy's FFT, and the mel filterbank written out as a matrix."""
import io
import wave

import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(3)
CLOSE = (1e-5, 1e-5, 0)  # sums of a few hundred products in another order, the last step rounds to float


def wav(samples, rate):
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setnchannels(samples.shape[1]), f.setsampwidth(2), f.setframerate(rate)
        f.writeframes(samples.astype("<i2").tobytes())
    return out.getvalue()


def text(data):
    return np.array(data, dtype=object)


for shape, rate in (((5, 1), 16000), ((4, 2), 44100), ((0, 1), 8000)):
    pcm = rng.integers(-32768, 32768, shape)
    data = wav(pcm, rate)
    audio = (pcm / 32768).astype(np.float32)
    g.case("DecodeWav", "", [text(data)], [audio, np.int32(rate)], dynamic=True)
    padded = np.zeros((7, 3), np.float32)
    padded[:shape[0]] = np.concatenate([audio] + [audio[:, -1:]] * (3 - shape[1]), 1)
    g.case("DecodeWav", "desired_channels: 3; desired_samples: 7", [text(data)], [padded, np.int32(rate)])
    g.case("EncodeWav", "", [(pcm / 32768).astype(np.float32), np.int32(rate)], [text(data)])
g.case("DecodeWav", "", [text(data[:30])], [], error="ata")
g.case("DecodeWav", "", [text(b"RIFX" + data[4:])], [], error="Expected RIFF")
eight = io.BytesIO()
with wave.open(eight, "wb") as f:
    f.setnchannels(1), f.setsampwidth(1), f.setframerate(8000)
    f.writeframes(b"abc")
g.case("DecodeWav", "", [text(eight.getvalue())], [], error="Can only read 16-bit WAV files, but received 8")

for length, channels, window, stride, squared in ((50, 1, 16, 8, "false"), (100, 2, 12, 5, "true"), (400, 1, 100, 60, "false"), (5, 1, 8, 2, "true")):
    x = rng.standard_normal((length, channels)).astype(np.float32)
    size = 1 << (window - 1).bit_length()
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    frames = 0 if length < window else 1 + (length - window) // stride
    out = np.zeros((channels, frames, size // 2 + 1))
    for c in range(channels):
        for f in range(frames):
            out[c, f] = np.abs(np.fft.rfft(x[f * stride:f * stride + window, c] * hann, size))
    out = out**2 if squared == "true" else out
    g.case("AudioSpectrogram", f"window_size: {window}; stride: {stride}; magnitude_squared: {squared}", [x],
           [out.astype(np.float32)], CLOSE)


def mel(f):
    return 1127 * np.log1p(f / 700)


def mfcc(spectrum, rate, low, high, filters, count):
    bins = spectrum.shape[-1]
    hz = np.arange(bins) * 0.5 * rate / (bins - 1)
    edges = np.linspace(mel(low), mel(high), filters + 2)
    m = mel(hz)
    bank = np.zeros((filters, bins))
    used = np.arange(bins)
    used = (used >= int(1.5 + low / hz[1])) & (used <= int(high / hz[1]))
    for k in range(filters):
        rise = (m - edges[k]) / (edges[k + 1] - edges[k])
        fall = (edges[k + 2] - m) / (edges[k + 2] - edges[k + 1])
        bank[k] = np.clip(np.minimum(rise, fall), 0, None) * used
    energy = np.log(np.maximum(np.sqrt(spectrum.astype(np.float64)) @ bank.T, 1e-12))
    dct = np.sqrt(2 / filters) * np.cos(np.arange(count)[:, None] * np.pi / filters * (np.arange(filters) + 0.5))
    return (energy @ dct.T).astype(np.float32)


for bins, rate, low, high, filters, count in ((129, 16000, 20, 4000, 40, 13), (65, 8000, 100, 3000, 10, 10), (257, 22050, 20, 8000, 26, 5)):
    s = rng.random((2, 3, bins)).astype(np.float32)
    g.case("Mfcc", f"lower_frequency_limit: {low}; upper_frequency_limit: {high}; filterbank_channel_count: {filters}; "
           f"dct_coefficient_count: {count}", [s, np.int32(rate)], [mfcc(s, rate, low, high, filters, count)], (1e-4, 1e-4, 0))
s = np.ones((1, 1, 5), np.float32)
g.case("Mfcc", "dct_coefficient_count: 41", [s, np.int32(8000)], [], error="dct_coefficient_count")
g.case("Mfcc", "", [s, np.int32(0)], [], error="a positive sample rate")
g.case("AudioSpectrogram", "window_size: 1; stride: 1", [np.ones((3, 1), np.float32)], [], error="window size")
g.save(__file__)
