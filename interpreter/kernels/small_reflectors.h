/* Cholesky factors and Householder reductions of small matrices, included once for each type: NUMBER is double or
 * double complex, NAME(f) the function f of the type, CONJ(x) the conjugate and SQUARE(x) the square of the magnitude
 * of a number.
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

/* The H with Hᴴ x = (beta, 0 …), of elements `step` apart; x becomes beta and the elements of v. Returns beta. What is
 * below 1e-140 counts as zero, because its square would not be accurate. */
static double NAME(reflect)(int count, NUMBER *x, int step, NUMBER *tau) {
    const NUMBER alpha = *x;
    double beta = creal(alpha), sum = cimag(alpha) * cimag(alpha);
    for (int i = 1; i < count; i++)
        sum += SQUARE(x[i * step]);
    *tau = 0;
    if (sum >= 1e-280) {
        beta = -copysign(sqrt(beta * beta + sum), beta);
        *tau = (beta - alpha) / beta;
        const NUMBER inverse = CONJ(alpha - beta) / SQUARE(alpha - beta);
        for (int i = 1; i < count; i++)
            x[i * step] *= inverse;
    }
    *x = beta;
    return beta;
}

/* c -= tau · v · (vᴴ c) for `lines` vectors c, which are `line_step` apart: columns for H from the left, and rows, with
 * `conjugated` v, for H from the right. */
static void NAME(apply)(NUMBER tau, int count, const NUMBER *v, int step, bool conjugated, NUMBER *c, int c_step,
                        int lines, int line_step) {
    NUMBER elements[TARE_SMALL_MOST];
    if (tau == 0) return;
    for (int i = 1; i < count; i++)
        elements[i] = conjugated ? CONJ(v[i * step]) : v[i * step];
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
        NAME(reflect)(m - i, v, 1, &tau[i]);
        NAME(apply)(CONJ(tau[i]), m - i, v, 1, false, v + m, 1, n - 1 - i, m);
    }
}

/* Reflector i is applied to the columns after it; then its own column of the product is computed. */
static void NAME(orgqr)(int m, int columns, int count, NUMBER *a, const NUMBER *tau) {
    for (int j = count; j < columns; j++)
        for (int i = 0; i < m; i++)
            a[j * m + i] = i == j;
    for (int i = count - 1; i >= 0; i--) {
        NUMBER *v = a + i * m + i;
        NAME(apply)(tau[i], m - i, v, 1, false, v + m, 1, columns - 1 - i, m);
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

/* a [m, n] = Q·B·Pᴴ for m >= n: `diagonal` [n] and `off` [n - 1] of the upper bidiagonal B are real. a becomes the
 * reflectors of Q, for orgqr with the n factors tau; vh [n, n] becomes Pᴴ. */
static void NAME(bidiagonal)(int m, int n, NUMBER *a, double *diagonal, double *off, NUMBER *tau, NUMBER *vh) {
    NUMBER right[TARE_SMALL_MOST];
    for (int i = 0; i < n; i++) {
        NUMBER *v = a + i * m + i, *row = v + m;
        const int rest = n - 1 - i;
        diagonal[i] = NAME(reflect)(m - i, v, 1, &tau[i]);
        NAME(apply)(CONJ(tau[i]), m - i, v, 1, false, row, 1, rest, m);
        if (rest == 0) continue;
        for (int k = 0; k < rest; k++)
            row[k * m] = CONJ(row[k * m]);
        off[i] = NAME(reflect)(rest, row, m, &right[i]);
        NAME(apply)(right[i], rest, row, m, true, row + 1, m, m - 1 - i, 1);
    }
    NAME(set_identity)(n, vh);
    for (int i = n - 2; i >= 0; i--) /* Pᴴ = … G(1)ᴴ·G(0)ᴴ */
        NAME(apply)(CONJ(right[i]), n - 1 - i, a + (i + 1) * m + i, m, true, vh + (i + 1) * n + i + 1, n, n - 1 - i, 1);
}
