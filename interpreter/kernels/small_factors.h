/* Factorizations of small matrices, included once for each type: NUMBER is double or double complex, NAME(f) the
 * function f of the type.
 *
 * Matrices are column-major; the leading dimension is the number of rows. A reflector is H = 1 - tau·v·vᴴ with v[0] =
 * 1; the other elements of v are stored in place of those that H eliminates. */

/* The upper triangle of a = UᴴU. Returns the number, from 1, of the first row whose diagonal is not positive; 0: none.
 */
static int NAME(potrf)(int n, NUMBER *a) {
    for (int j = 0; j < n; j++) {
        NUMBER *column = a + j * n;
        double diagonal = creal(column[j]);
        for (int i = 0; i < j; i++) {
            NUMBER sum = column[i];
            for (int k = 0; k < i; k++)
                sum -= CONJ(a[i * n + k]) * column[k];
            column[i] = sum / creal(a[i * n + i]);
            diagonal -= SQUARE(column[i]);
        }
        if (!(diagonal > 0)) return j + 1;
        column[j] = sqrt(diagonal);
    }
    return 0;
}

/* ---- LU ---- */

static void NAME(exchange)(NUMBER *x, NUMBER *y, int count, int step) {
    for (int i = 0; i < count * step && x != y; i += step) {
        const NUMBER moved = x[i];
        x[i] = y[i];
        y[i] = moved;
    }
}

/* a [n, n] = P·L·U. Returns the number, from 1, of the first pivot that is zero; 0: none. */
static int NAME(getrf)(int n, NUMBER *a, int *pivots) {
    int info = 0;
    for (int j = 0; j < n; j++) {
        NUMBER *column = a + j * n;
        double largest = -1; /* the first row of a column of NaN */
        pivots[j] = j + 1;
        for (int i = j; i < n; i++) {
            const double size = MODULUS(column[i]);
            if (size > largest) largest = size, pivots[j] = i + 1;
        }
        NAME(exchange)(a + j, a + pivots[j] - 1, n, n);
        if (largest == 0 && info == 0) info = j + 1;
        if (largest == 0) continue;
        const NUMBER inverse = INVERSE(column[j]);
        for (int i = j + 1; i < n; i++)
            column[i] *= inverse;
        for (int c = j + 1; c < n; c++)
            for (int i = j + 1; i < n; i++)
                a[c * n + i] -= a[c * n + j] * column[i];
    }
    return info;
}

/* b [k, n] becomes b·op(a)⁻¹, as by trsm with the same form. */
static void NAME(trsm)(const char *form, int k, int n, const NUMBER *a, NUMBER *b) {
    const bool adjoint = form[2] == 'C', ascending = (form[1] == 'U') != adjoint;
    for (int step = 0; step < n; step++) {
        const int j = ascending ? step : n - 1 - step, first = ascending ? 0 : j + 1, last = ascending ? j : n;
        for (int p = first; p < last; p++) {
            const NUMBER factor = adjoint ? CONJ(a[p * n + j]) : a[j * n + p];
            for (int i = 0; i < k; i++)
                b[j * k + i] -= factor * b[p * k + i];
        }
        if (form[3] == 'U') continue;
        const NUMBER inverse = INVERSE(adjoint ? CONJ(a[j * n + j]) : a[j * n + j]);
        for (int i = 0; i < k; i++)
            b[j * k + i] *= inverse;
    }
}

/* ---- reflectors ---- */

/* The H with Hᴴ x = (beta, 0 …); x becomes beta and the elements of v. What is below 1e-140 counts as zero, because its
 * square would not be accurate. */
static void NAME(reflect)(int count, NUMBER *x, NUMBER *tau) {
    const NUMBER alpha = *x;
    double beta = creal(alpha), sum = cimag(alpha) * cimag(alpha);
    for (int i = 1; i < count; i++)
        sum += SQUARE(x[i]);
    *tau = 0;
    if (sum >= 1e-280) {
        beta = -copysign(sqrt(beta * beta + sum), beta);
        *tau = (beta - alpha) * (1 / beta);
        const NUMBER inverse = CONJ(alpha - beta) * (1 / SQUARE(alpha - beta));
        for (int i = 1; i < count; i++)
            x[i] *= inverse;
    }
    *x = beta;
}

/* c -= tau · v · (vᴴ c) for `lines` vectors c, which are `line_step` apart: columns for H from the left, and rows, with
 * `conjugated` v, for H from the right. */
static void NAME(apply)(NUMBER tau, int count, const NUMBER *v, bool conjugated, NUMBER *c, int c_step, int lines,
                        int line_step) {
    NUMBER elements[TARE_SMALL_MOST];
    if (tau == 0) return;
    for (int i = 1; i < count; i++)
        elements[i] = conjugated ? CONJ(v[i]) : v[i];
    for (int line = 0; line < lines; line++, c += line_step) {
        NUMBER sum = c[0];
        for (int i = 1; i < count; i++)
            sum += CONJ(elements[i]) * c[i * c_step];
        sum *= tau;
        c[0] -= sum;
        for (int i = 1; i < count; i++)
            c[i * c_step] -= elements[i] * sum;
    }
}

static void NAME(geqrf)(int m, int n, NUMBER *a, NUMBER *tau) {
    for (int i = 0; i < m && i < n; i++) {
        NUMBER *v = a + i * m + i;
        NAME(reflect)(m - i, v, &tau[i]);
        NAME(apply)(CONJ(tau[i]), m - i, v, false, v + m, 1, n - 1 - i, m);
    }
}

/* Reflector i is applied to the columns after it; then its own column of the product is computed. */
static void NAME(orgqr)(int m, int columns, int count, NUMBER *a, const NUMBER *tau) {
    for (int j = count; j < columns; j++)
        for (int i = 0; i < m; i++)
            a[j * m + i] = i == j;
    for (int i = count - 1; i >= 0; i--) {
        NUMBER *v = a + i * m + i;
        NAME(apply)(tau[i], m - i, v, false, v + m, 1, columns - 1 - i, m);
        for (int k = 1; k < m - i; k++)
            v[k] *= -tau[i];
        v[0] = 1 - tau[i];
        for (int k = 1; k <= i; k++)
            v[-k] = 0;
    }
}

static void NAME(set_identity)(int n, NUMBER *a) {
    for (int i = 0; i < n * n; i++)
        a[i] = i % (n + 1) == 0;
}

/* a [n, n] = Q·H·Qᴴ with a Hessenberg matrix H, which is stored in a, zeros included. */
static void NAME(hessenberg)(int n, NUMBER *a, NUMBER *q) {
    NUMBER tau[TARE_SMALL_MOST];
    for (int i = 0; i + 2 < n; i++) {
        NUMBER *v = a + i * n + i + 1;
        NAME(reflect)(n - 1 - i, v, &tau[i]);
        NAME(apply)(tau[i], n - 1 - i, v, true, a + (i + 1) * n, n, n, 1);
        NAME(apply)(CONJ(tau[i]), n - 1 - i, v, false, v + n, 1, n - 1 - i, n);
    }
    NAME(set_identity)(n, q);
    for (int i = n - 3; i >= 0; i--) {
        NUMBER *v = a + i * n + i + 1;
        NAME(apply)(tau[i], n - 1 - i, v, false, q + (i + 1) * n + i + 1, 1, n - 1 - i, n);
        for (int k = 1; k < n - 1 - i; k++)
            v[k] = 0;
    }
}

/* ---- Jacobi's rotations ---- */

/* (x, y) := (c·x - conj(s)·y, s·x + c·y) for `count` pairs whose elements are `step` apart. */
static void NAME(rotate)(double c, NUMBER s, NUMBER *x, NUMBER *y, int count, int step) {
    for (int i = 0; i < count * step; i += step) {
        const NUMBER old = x[i];
        x[i] = c * old - CONJ(s) * y[i];
        y[i] = s * old + c * y[i];
    }
}

/* The rotation of two columns that diagonalizes [p z; conj(z) q]: returns c, and s. */
static double NAME(rotation)(double p, double q, NUMBER z, NUMBER *s) {
    const double difference = q - p, length = sqrt(difference * difference + 4 * SQUARE(z));
    const NUMBER tangent = 2 / (difference + copysign(length, difference)) * z;
    const double c = 1 / sqrt(1 + SQUARE(tangent));
    *s = c * tangent;
    return c;
}

/* Rotations by larger angles are followed by another sweep. By smaller ones, and for smaller cosines, they leave off
 * the diagonal what is of the size of rounding errors. */
#define SQUARE_OF_ANGLE 1e-17

/* Multiplies a [m, n] from the right with the unitary v that makes its columns orthogonal, except those of the size of
 * rounding errors. */
static void NAME(orthogonalize)(int m, int n, NUMBER *a, NUMBER *v) {
    bool again = true;
    double total = 0;
    NUMBER s;
    NAME(set_identity)(n, v);
    for (int i = 0; i < m * n; i++)
        total += SQUARE(a[i]);
    for (int sweep = 0; again && sweep < MOST_SWEEPS; sweep++) {
        again = false;
        for (int p = 0; p + 1 < n; p++)
            for (int q = p + 1; q < n; q++) {
                NUMBER *x = a + p * m, *y = a + q * m, z = 0;
                double x_square = 0, y_square = 0;
                for (int i = 0; i < m; i++)
                    x_square += SQUARE(x[i]), y_square += SQUARE(y[i]), z += CONJ(x[i]) * y[i];
                const double product = x_square * y_square;
                if (SQUARE(z) <= product * 1e-30 || fmin(x_square, y_square) <= total * 1e-32) continue;
                const double c = NAME(rotation)(x_square, y_square, z, &s);
                NAME(rotate)(c, s, x, y, m, 1);
                NAME(rotate)(c, s, v + p * n, v + q * n, n, 1);
                again |= SQUARE(s) > SQUARE_OF_ANGLE || SQUARE(z) > product * SQUARE_OF_ANGLE;
            }
    }
}
#undef SQUARE_OF_ANGLE

/* Sorts the columns of x [m, n] and v [n, n] by value, descending. */
static void NAME(sort)(double *values, int m, int n, NUMBER *x, NUMBER *v) {
    for (int i = 0; i < n; i++) {
        int first = i;
        for (int k = i + 1; k < n; k++)
            if (values[k] > values[first]) first = k;
        const double moved = values[i];
        values[i] = values[first], values[first] = moved;
        NAME(exchange)(x + i * m, x + first * m, m, 1);
        NAME(exchange)(v + i * n, v + first * n, n, 1);
    }
}

/* Eigenvalues of a [2, 2], of which one triangle is read, ascending; the eigenvectors replace a. One rotation. */
static void NAME(syevd_of_2)(bool upper, NUMBER *a, double *values) {
    const NUMBER z = upper ? a[2] : CONJ(a[1]);
    const double p = creal(a[0]), q = creal(a[3]);
    NUMBER s = 0;
    const double c = SQUARE(z) <= (p * p + q * q) * 1e-33 ? 1 : NAME(rotation)(p, q, z, &s);
    const double shift = creal(s * CONJ(z)) / c; /* both values move away from the other one */
    const int smaller = q < p;
    values[smaller] = p - shift, values[!smaller] = q + shift;
    NUMBER *x = a + 2 * smaller, *y = a + 2 * !smaller;
    x[0] = c, x[1] = -CONJ(s);
    y[0] = s, y[1] = c;
}

/* Singular values of a [m, n], m >= n, `columns` columns of u and vh [n, n]. The columns of A·V are orthogonal: scaled,
 * they are u. Where more are requested, or some are close to 0, A·V = Q·R with a diagonal R, whose signs go to V. */
static void NAME(gesdd)(int m, int n, int columns, NUMBER *a, double *s, NUMBER *u, NUMBER *vh) {
    NUMBER v[TARE_SMALL_MOST * TARE_SMALL_MOST], tau[TARE_SMALL_MOST];
    double factors[TARE_SMALL_MOST]; /* of the columns of V */
    NAME(orthogonalize)(m, n, a, v);
    for (int j = 0; j < n; j++) {
        s[j] = 0, factors[j] = 1;
        for (int i = 0; i < m; i++)
            s[j] += SQUARE(a[j * m + i]);
        s[j] = sqrt(s[j]);
    }
    NAME(sort)(s, m, n, a, v);
    if (columns == 0) return;
    if (columns == n && s[n - 1] > 1e-10 * s[0]) {
        for (int i = 0; i < m * n; i++)
            u[i] = a[i] * (1 / s[i / m]);
    } else {
        NAME(geqrf)(m, n, a, tau);
        for (int j = 0; j < n; j++)
            factors[j] = copysign(1, creal(a[j * (m + 1)]));
        memcpy(u, a, (size_t)(m * n) * sizeof *u);
        NAME(orgqr)(m, columns, n, u, tau);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            vh[i * n + j] = factors[j] * CONJ(v[j * n + i]);
}
