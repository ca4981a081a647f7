/* Mini-batch descent of logistic regressions that train on the same rows: harness/tasks/native.py says how it is used.

   Features x: rows of `width` floats, a multiple of 16. Weights: for each fit, for each class, `width` floats, then the
   bias and 15 zeros, so that the bias is one more weight to an optimiser. Two classes enter by the difference of their
   logits alone. A block of rows is read once, while it is near: products, errors, then its share of the gradient. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define PAD 16   /* floats that a weight vector has beyond the features */
#define TILE 4   /* rows and outputs whose products are summed in registers together */
#define BLOCK 8  /* rows between reading and using */
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float half __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
typedef float quarter __attribute__((vector_size(LANES), aligned(4), may_alias));
typedef int32_t whole __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

enum { ADAM, RMSPROP, SGD, ADAGRAD };

INLINE float total(vec v)
{
    union { vec v; half h[2]; quarter q[4]; float f[LANES]; } u = {v};
    u.h[0] += u.h[1];
    u.q[0] += u.q[1];
    float sum = 0;
    for (int i = 0; i < LANES / 4; i++)
        sum += u.f[i];
    return sum;
}

/* e^x to about 1e-7 of its value, x held within what a float can give: 2^k times a polynomial on [-ln 2 / 2, ln 2 / 2] */
INLINE vec exponential(vec x)
{
    const vec zero = {0}, low = zero - 87, high = zero + 88;
    x = (vec)(((whole)x & (x > low)) | ((whole)low & ~(x > low)));
    x = (vec)(((whole)x & (x < high)) | ((whole)high & ~(x < high)));
    vec shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: its last bits are now the nearest whole number */
    vec k = shifted - 12582912.0f;
    vec r = x - k * 0.693359375f + k * 2.12194440e-4f;
    vec p = zero + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return (vec)((whole)p + (__builtin_convertvector(k, whole) << 23));
}

/* z[a, o] = x[a] . w[o] + bias[o] for TILE rows a and `outs` outputs o */
INLINE void multiply(const float *const *x, const float *w, size_t width, float *z, size_t outputs, int outs)
{
    vec sum[TILE][TILE] = {{{0}}};
    for (size_t j = 0; j < width; j += LANES) {
        vec row[TILE];
#pragma GCC unroll 4
        for (int a = 0; a < TILE; a++)
            row[a] = *(const vec *)(x[a] + j);
#pragma GCC unroll 4
        for (int o = 0; o < outs; o++) {
            vec weight = *(const vec *)(w + o * (width + PAD) + j);
#pragma GCC unroll 4
            for (int a = 0; a < TILE; a++)
                sum[a][o] += row[a] * weight;
        }
    }
    for (int a = 0; a < TILE; a++)
        for (int o = 0; o < outs; o++)
            z[a * outputs + o] = total(sum[a][o]) + w[o * (width + PAD) + width];
}

/* g[o] += sum over a of e[a, o] x[a], and the bias likewise */
INLINE void accumulate(const float *const *x, float *g, size_t width, const float *e, size_t outputs, int outs)
{
    for (size_t j = 0; j < width; j += LANES) {
        vec row[TILE];
#pragma GCC unroll 4
        for (int a = 0; a < TILE; a++)
            row[a] = *(const vec *)(x[a] + j);
#pragma GCC unroll 4
        for (int o = 0; o < outs; o++) {
            vec sum = *(const vec *)(g + o * (width + PAD) + j);
#pragma GCC unroll 4
            for (int a = 0; a < TILE; a++)
                sum += e[a * outputs + o] * row[a];
            *(vec *)(g + o * (width + PAD) + j) = sum;
        }
    }
    for (int o = 0; o < outs; o++)
        for (int a = 0; a < TILE; a++)
            g[o * (width + PAD) + width] += e[a * outputs + o];
}

/* `call(x, w, width, z, outputs, outs)` for all outputs, TILE at a time, each number of them its own code */
#define FOR_OUTPUTS(call, x, w, width, z, outputs)                                       \
    for (size_t o = 0; o < (outputs); o += TILE) {                                       \
        switch ((outputs) - o) {                                                         \
        case 1: call(x, (w) + o * ((width) + PAD), width, (z) + o, outputs, 1); break;   \
        case 2: call(x, (w) + o * ((width) + PAD), width, (z) + o, outputs, 2); break;   \
        case 3: call(x, (w) + o * ((width) + PAD), width, (z) + o, outputs, 3); break;   \
        default: call(x, (w) + o * ((width) + PAD), width, (z) + o, outputs, TILE);      \
        }                                                                                \
    }

static void logits(const float *const *x, const float *w, size_t width, float *z, size_t outputs)
{
    FOR_OUTPUTS(multiply, x, w, width, z, outputs)
}

static void gradient(const float *const *x, float *g, size_t width, const float *e, size_t outputs)
{
    FOR_OUTPUTS(accumulate, x, g, width, e, outputs)
}

/* z (BLOCK, fits) or (BLOCK, fits, classes), logits -> their derivative of the cross-entropy; room beyond z to a vec */
static void errors(float *z, const int64_t *label, size_t classes, size_t fits)
{
    size_t outputs = classes == 2 ? fits : fits * classes, size = BLOCK * outputs;
    if (classes == 2) {
        for (size_t i = 0; i < size; i += LANES)
            *(vec *)(z + i) = 1 / (1 + exponential(-*(vec *)(z + i)));
        for (size_t a = 0; a < BLOCK; a++)
            for (size_t f = 0; f < fits; f++)
                z[a * fits + f] -= label[a];
        return;
    }
    for (float *p = z; p < z + size; p += classes) {
        float top = p[0];
        for (size_t c = 1; c < classes; c++)
            top = p[c] > top ? p[c] : top;
        for (size_t c = 0; c < classes; c++)
            p[c] -= top;
    }
    for (size_t i = 0; i < size; i += LANES)
        *(vec *)(z + i) = exponential(*(vec *)(z + i));
    for (size_t i = 0; i < BLOCK * fits; i++) {
        float *p = z + i * classes, sum = 0;
        for (size_t c = 0; c < classes; c++)
            sum += p[c];
        for (size_t c = 0; c < classes; c++)
            p[c] /= sum;
        p[label[i / fits]] -= 1;
    }
}

/* One step of torch's optimiser `kind` with its default settings; `by`: the gradient of the mean loss, times 1 / scale */
static void update(int kind, float *w, float *m, float *v, const float *by, float scale, float l2, size_t size,
                   float lr, int64_t step)
{
    if (kind == ADAM) {
        double root = sqrt(1 - pow(0.999, step));
        float rate = lr * root / (1 - pow(0.9, step)), eps = 1e-8 * root;
        for (size_t j = 0; j < size; j++) {
            float g = scale * by[j] + l2 * w[j];
            m[j] += 0.1f * (g - m[j]);
            v[j] = 0.999f * v[j] + 0.001f * g * g;
            w[j] -= rate * m[j] / (sqrtf(v[j]) + eps);
        }
    } else if (kind == SGD) {
        for (size_t j = 0; j < size; j++)
            w[j] -= lr * (scale * by[j] + l2 * w[j]);
    } else {
        float kept = kind == RMSPROP ? 0.99f : 1, share = kind == RMSPROP ? 0.01f : 1;
        float eps = kind == RMSPROP ? 1e-8f : 1e-10f;
        for (size_t j = 0; j < size; j++) {
            float g = scale * by[j] + l2 * w[j];
            v[j] = kept * v[j] + share * g * g;
            w[j] -= lr * g / (sqrtf(v[j]) + eps);
        }
    }
}

/* One pass over x[train[order[0 .. n - 1]]], labels y, in batches; only the fits which[0 .. fits - 1] learn.

   weights, first, second: (all fits, classes, width + PAD), the moments as the optimiser needs them. decay: all fits.
   steps: those made before. room: 2 fits classes (width + PAD) + BLOCK fits classes + PAD floats. */
void descend(const float *x, size_t width, const int64_t *y, const int32_t *train, const int32_t *order, size_t n,
             size_t batch, size_t classes, size_t fits, const int32_t *which, float *weights, float *first,
             float *second, const float *decay, int kind, float lr, int64_t steps, float *room)
{
    const size_t each = classes == 2 ? 1 : classes, outputs = fits * each, size = width + PAD;
    float *now = room, *g = now + outputs * size, *z = g + outputs * size;
    for (size_t begin = 0; begin < n; begin += batch) {
        const size_t end = begin + batch < n ? begin + batch : n;
        for (size_t f = 0; f < fits; f++) {
            const float *mine = weights + which[f] * classes * size;
            for (size_t j = 0; j < each * size; j++)
                now[f * each * size + j] = classes == 2 ? mine[size + j] - mine[j] : mine[j];
        }
        for (size_t j = 0; j < outputs * size; j++)
            g[j] = 0;
        for (size_t i = begin; i < end; i += BLOCK) {
            const size_t count = end - i < BLOCK ? end - i : BLOCK;
            const float *rows[BLOCK];
            int64_t label[BLOCK];
            for (size_t a = 0; a < BLOCK; a++) { /* a block that is not full repeats its first row, whose errors are 0 */
                const size_t row = train[order[i + (a < count ? a : 0)]], ahead = i + BLOCK + a;
                rows[a] = x + row * width;
                label[a] = y[row];
                if (ahead < n) {
                    const float *next = x + train[order[ahead]] * width;
                    for (size_t j = 0; j < width; j += 16)
                        __builtin_prefetch(next + j);
                }
            }
            for (size_t a = 0; a < BLOCK; a += TILE)
                logits(rows + a, now, width, z + a * outputs, outputs);
            errors(z, label, classes, fits);
            for (size_t j = count * outputs; j < BLOCK * outputs; j++)
                z[j] = 0;
            for (size_t a = 0; a < BLOCK; a += TILE)
                gradient(rows + a, g, width, z + a * outputs, outputs);
        }
        steps++;
        for (size_t f = 0; f < fits; f++)
            for (size_t c = 0; c < classes; c++) {
                const size_t at = (which[f] * classes + c) * size;
                const float scale = (classes == 2 && c == 0 ? -1.0f : 1.0f) / (end - begin);
                const float *by = g + (classes == 2 ? f : f * classes + c) * size;
                update(kind, weights + at, first + at, second + at, by, scale, decay[which[f]], size, lr, steps);
            }
    }
}

/* labels[f, i]: the class that fit f of `fits` finds likeliest for x[rows[i]]. room: BLOCK fits classes floats. */
void predict(const float *x, size_t width, const int32_t *rows, size_t n, size_t classes, size_t fits,
             const float *weights, int64_t *labels, float *room)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const float *block[BLOCK];
        for (size_t a = 0; a < BLOCK; a++)
            block[a] = x + rows[i + a < n ? i + a : i] * width;
        for (size_t a = 0; a < BLOCK; a += TILE)
            logits(block + a, weights, width, room + a * fits * classes, fits * classes);
        for (size_t a = 0; a < BLOCK && i + a < n; a++)
            for (size_t f = 0; f < fits; f++) {
                const float *z = room + (a * fits + f) * classes;
                size_t best = 0;
                for (size_t c = 1; c < classes; c++)
                    best = z[c] > z[best] ? c : best;
                labels[f * n + i + a] = best;
            }
    }
}
