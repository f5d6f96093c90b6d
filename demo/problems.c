/* demo/problems.c: matrices that people invert, made from the equations they come from.
 *
 * Owned by the caller once made. Cost: a few hundred kilobytes and less than a millisecond.
 */
#include "demo/demo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool problem_alloc(struct demo_problem *problem)
{
    problem->a = calloc((size_t)(problem->batch * problem->n * problem->n), sizeof *problem->a);
    return problem->a != NULL;
}

/* ---- A tracker's innovation covariance ---- */

enum {
    TRACKS = 8,
    SENSORS = 4,
    STATES = 6 /* position and velocity in three dimensions */
};

/* P [STATES, STATES]: the covariance that `steps` predictions leave of a first fix, for constant
 * velocity over dt seconds disturbed by accelerations of variance q. */
static void predicted_covariance(double p[STATES][STATES], int steps, double dt, double q)
{
    memset(p, 0, sizeof(double[STATES][STATES]));
    for (int axis = 0; axis < 3; axis++) {
        double pp = 25.0, pv = 0.0, vv = 4.0; /* m^2, m^2/s, (m/s)^2 */
        for (int step = 0; step < steps; step++) {
            pp += 2 * dt * pv + dt * dt * vv + q * dt * dt * dt / 3;
            pv += dt * vv + q * dt * dt / 2;
            vv += q * dt;
        }
        p[axis][axis] = pp;
        p[axis][axis + 3] = p[axis + 3][axis] = pv;
        p[axis + 3][axis + 3] = vv;
    }
}

/* H [SENSORS, STATES]: a range sensor sees the position along its line of sight. */
static void sight_lines(double h[SENSORS][STATES], const double target[3])
{
    static const double sensors[SENSORS][3] = {
        {0, 0, 0}, {3000, 0, 40}, {0, 4000, 15}, {2500, 3500, 120}};
    memset(h, 0, sizeof(double[SENSORS][STATES]));
    for (int s = 0; s < SENSORS; s++) {
        double d[3], range = 0;
        for (int axis = 0; axis < 3; axis++) {
            d[axis] = target[axis] - sensors[s][axis];
            range += d[axis] * d[axis];
        }
        for (int axis = 0; axis < 3; axis++)
            h[s][axis] = d[axis] / sqrt(range);
    }
}

/* S = H P H^T + R for each track; R: ranges are good to 3 m. */
static bool kalman_make(struct demo_problem *problem)
{
    *problem = (struct demo_problem){
        .title = "Innovation covariances of a Kalman filter, S = H P H^T + R",
        .story = "Eight aircraft, each seen by four range sensors; the gain is K = P H^T S^-1.",
        .fp32 = true,
        .batch = TRACKS,
        .n = SENSORS,
    };
    if (!problem_alloc(problem))
        return false;
    for (int track = 0; track < TRACKS; track++) {
        double p[STATES][STATES], h[SENSORS][STATES];
        double target[3] = {900.0 + 310 * track, 5200.0 - 420 * track, 800.0 + 95 * track};
        predicted_covariance(p, 1 + track, 0.5, 2.0);
        sight_lines(h, target);
        double *s = problem->a + track * problem->n * problem->n;
        for (int e = 0; e < SENSORS * SENSORS; e++) {
            int i = e / SENSORS, j = e % SENSORS;
            double sum = i == j ? 9.0 : 0.0;
            for (int k = 0; k < STATES * STATES; k++)
                sum += h[i][k / STATES] * p[k / STATES][k % STATES] * h[j][k % STATES];
            s[e] = (float)sum;
        }
    }
    return true;
}

/* ---- Blocks for a block-Jacobi preconditioner ---- */

enum {
    GRID = 64,          /* inner points of the unit square along each side */
    TILE = 4,           /* a block couples TILE x TILE neighbouring points */
    TILES = GRID / TILE /* blocks along each side */
};

/* The five-point coefficients of -nu Laplace(u) + w . grad(u) at point (i, j), upwind differences;
 * the wind w circles around the centre. Order: west, east, south, north, centre. */
static void stencil(double c[5], int i, int j)
{
    const double h = 1.0 / (GRID + 1), nu = 0.005;
    double x = (i + 1) * h - 0.5, y = (j + 1) * h - 0.5;
    double wx = -4 * y * (0.25 - x * x), wy = 4 * x * (0.25 - y * y);
    c[0] = -nu / (h * h) - fmax(wx, 0) / h;
    c[1] = -nu / (h * h) + fmin(wx, 0) / h;
    c[2] = -nu / (h * h) - fmax(wy, 0) / h;
    c[3] = -nu / (h * h) + fmin(wy, 0) / h;
    c[4] = -(c[0] + c[1] + c[2] + c[3]);
}

/* One diagonal block, n x n with n = TILE^2, of the matrix ordered tile by tile. */
static void tile_block(double *block, int tile_i, int tile_j)
{
    static const int step[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    const int n = TILE * TILE;
    for (int row = 0; row < n; row++) {
        int i = row / TILE, j = row % TILE;
        double c[5];
        stencil(c, tile_i * TILE + i, tile_j * TILE + j);
        block[row * n + row] = c[4];
        for (int side = 0; side < 4; side++) {
            int to_i = i + step[side][0], to_j = j + step[side][1];
            if (to_i >= 0 && to_i < TILE && to_j >= 0 && to_j < TILE)
                block[row * n + to_i * TILE + to_j] = c[side];
        }
    }
}

static bool convection_make(struct demo_problem *problem)
{
    *problem = (struct demo_problem){
        .title = "Block-Jacobi blocks of a convection-diffusion operator",
        .story = "-nu Laplace(u) + w . grad(u) on a 64 x 64 grid, upwind, a circling wind w;\n"
                 "   the blocks of 4 x 4 neighbouring points precondition an iterative solver.",
        .batch = (int64_t)TILES * TILES,
        .n = (int64_t)TILE * TILE,
    };
    if (!problem_alloc(problem))
        return false;
    for (int t = 0; t < TILES * TILES; t++)
        tile_block(problem->a + t * problem->n * problem->n, t / TILES, t % TILES);
    return true;
}

/* ---- A beam's stiffness ---- */

enum {
    ELEMENTS = 50
};
static const double beam_length = 4.0;     /* m */
static const double beam_rigidity = 2.1e6; /* E I, N m^2 */

/* The inverse of the stiffness is the flexibility: its entry for the free end's deflection under a
 * unit load there is L^3 / (3 E I), which beam elements give exactly but for rounding. */
static bool beam_law(const struct demo_problem *problem, const double *inverse)
{
    int64_t tip = problem->n - 2;
    double found = inverse[tip * problem->n + tip];
    double theory = beam_length * beam_length * beam_length / (3 * beam_rigidity);
    double error = fabs(found - theory) / theory;
    printf("   The free end sinks %.12g um/N by the inverse, L^3/(3EI) = %.12g um/N "
           "(they differ by %.1e).\n",
           found * 1e6, theory * 1e6, error);
    return error < 1e-6;
}

/* A cantilever of ELEMENTS Euler-Bernoulli elements: unknowns are deflection and rotation of each
 * node but the clamped first one. */
static bool beam_make(struct demo_problem *problem)
{
    *problem = (struct demo_problem){
        .title = "Stiffness of a cantilever beam (Euler-Bernoulli)",
        .story = "50 elements, clamped at one end; the inverse is the flexibility: deflections "
                 "under unit loads.",
        .batch = 1,
        .n = (int64_t)2 * ELEMENTS,
        .law = beam_law,
    };
    if (!problem_alloc(problem))
        return false;
    const double l = beam_length / ELEMENTS, s = beam_rigidity / (l * l * l);
    const double element[4][4] = {{12 * s, 6 * l * s, -12 * s, 6 * l * s},
                                  {6 * l * s, 4 * l * l * s, -6 * l * s, 2 * l * l * s},
                                  {-12 * s, -6 * l * s, 12 * s, -6 * l * s},
                                  {6 * l * s, 2 * l * l * s, -6 * l * s, 4 * l * l * s}};
    for (int e = 0; e < ELEMENTS; e++) {
        for (int k = 0; k < 16; k++) {
            /* The clamped node's unknowns would be -2 and -1: they are left out. */
            int row = 2 * (e - 1) + k / 4, column = 2 * (e - 1) + k % 4;
            if (row >= 0 && column >= 0)
                problem->a[row * problem->n + column] += element[k / 4][k % 4];
        }
    }
    return true;
}

/* ---- Heat through a wall ---- */

enum {
    WALLS = 8,
    NODES = 64, /* of a wall, from the inside out */
    BRICK_FROM = 8
};

/* What a node is made of: conductivity in W/(m K), heat capacity in J/(m^3 K). */
struct material {
    double conductivity, capacity;
};

static struct material material_of(int wall, int node)
{
    static const struct material plaster = {0.5, 1.0e6}, brick = {0.7, 1.5e6}, wool = {0.04, 4e4};
    if (node < BRICK_FROM)
        return plaster;
    return node < NODES - 4 * (wall + 1) ? brick : wool;
}

/* An insulated wall that has one temperature keeps it: the rows of the inverse sum to one. */
static bool wall_law(const struct demo_problem *problem, const double *inverse)
{
    double worst = 0;
    for (int64_t i = 0; i < problem->n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < problem->n; j++)
            sum += inverse[i * problem->n + j];
        worst = fmax(worst, fabs(sum - 1));
    }
    printf("   A wall of one temperature keeps it: rows of the inverse sum to 1 (to %.1e).\n",
           worst);
    return worst < 1e-12;
}

/* One implicit step of 60 s, (I + dt C^-1 K) T' = T, nodes 5 mm apart, no heat through the ends. */
static bool wall_make(struct demo_problem *problem)
{
    *problem = (struct demo_problem){
        .title = "Heat conduction through insulated walls, one implicit step",
        .story = "Plaster, brick and 4 to 32 nodes of wool; the inverse is the step's propagator.",
        .batch = WALLS,
        .n = NODES,
        .tridiagonal = true,
        .law = wall_law,
    };
    const double spacing = 0.005, step = 60;
    if (!problem_alloc(problem))
        return false;
    for (int wall = 0; wall < WALLS; wall++) {
        double *a = problem->a + wall * NODES * NODES;
        for (int i = 0; i < NODES; i++) {
            struct material here = material_of(wall, i);
            a[i * NODES + i] = 1;
            for (int to = i - 1; to <= i + 1; to += 2) {
                if (to < 0 || to >= NODES)
                    continue;
                double k = here.conductivity, other = material_of(wall, to).conductivity;
                double flow =
                    step * 2 * k * other / (k + other) / (here.capacity * spacing * spacing);
                a[i * NODES + to] = -flow;
                a[i * NODES + i] += flow;
            }
        }
    }
    return true;
}

/* ---- A background covariance for data assimilation ---- */

enum {
    CYCLES = 6, /* analyses, a day apart */
    CELLS = 96  /* of a circle of latitude, in one basin */
};

/* Length of correlation, in cells, that day. */
static double length_of(int day)
{
    return 8.0 + 0.4 * day;
}

/* Along a line, correlations exp(-|i - j| / length) belong to a chain: cells that are not next to
 * each other know of one another only by those between, and the inverse is tridiagonal. */
static double chain_inverse(int i, int j, double length)
{
    double r = exp(-1 / length), end = i == 0 || i == CELLS - 1 ? 0 : r * r;
    if (i == j)
        return (1 + end) / (1 - r * r);
    return i - j == 1 || j - i == 1 ? -r / (1 - r * r) : 0;
}

static bool covariance_law(const struct demo_problem *problem, const double *inverse)
{
    double worst = 0;
    for (int e = 0; e < CELLS * CELLS; e++) {
        double exact = chain_inverse(e / CELLS, e % CELLS, length_of(1));
        worst = fmax(worst, fabs(inverse[e] - exact));
    }
    worst /= chain_inverse(1, 1, length_of(1)) * (double)problem->n;
    printf("   Its inverse in closed form is tridiagonal: they differ by %.1e of its size.\n",
           worst);
    return worst < 1e-12;
}

/* The covariance of each day, and the inverse that the day before left. */
static bool covariance_make(struct demo_problem *problem)
{
    *problem = (struct demo_problem){
        .title = "Background covariances of a data assimilation, day by day",
        .story = "Correlations over 96 cells whose length grows by a little; the analysis weighs\n"
                 "   the forecast by the inverse. A method that can starts from yesterday's.",
        .batch = CYCLES,
        .n = CELLS,
        .law = covariance_law,
    };
    problem->v0 = calloc((size_t)CYCLES * CELLS * CELLS, sizeof *problem->v0);
    if (!problem_alloc(problem) || problem->v0 == NULL)
        return false;
    for (int e = 0; e < CYCLES * CELLS * CELLS; e++) {
        int day = 1 + e / (CELLS * CELLS), i = e / CELLS % CELLS, j = e % CELLS;
        problem->a[e] = exp(-abs(i - j) / length_of(day));
        problem->v0[e] = chain_inverse(i, j, length_of(day - 1));
    }
    return true;
}

/* ---- Modes of a structure, seen through noise ---- */

enum {
    SENSES = 72, /* sensors along a string, equally spaced */
    MODES = 9
};
static const double noise = 0.25; /* variance of each sensor */

/* Amplitude of mode k (0 ..) at sensor i; modes are orthonormal. */
static double mode(int k, int i)
{
    return sqrt(2.0 / (SENSES + 1)) * sin(acos(-1.0) * (k + 1) * (i + 1) / (SENSES + 1));
}

/* Variance of mode k on one of two days. */
static double mode_variance(int k, int day)
{
    return (day + 1) * 40.0 / ((k + 1) * (k + 1));
}

static bool modes_law(const struct demo_problem *problem, const double *inverse)
{
    double worst = 0;
    for (int e = 0; e < SENSES * SENSES; e++) {
        double exact = e / SENSES == e % SENSES ? 1 : 0;
        for (int k = 0; k < MODES; k++) {
            double share = mode_variance(k, 0) / (noise + mode_variance(k, 0));
            exact -= share * mode(k, e / SENSES) * mode(k, e % SENSES);
        }
        worst = fmax(worst, fabs(inverse[e] - exact / noise) * noise);
    }
    printf(
        "   Its inverse in closed form takes each mode away by its share: they differ by %.1e of "
        "its size.\n",
        worst);
    return worst < 1e-12 * (double)problem->n;
}

/* C = noise I + sum of variance_k v_k v_k^T: a diagonal, and a product of two thin matrices. */
static bool modes_make(struct demo_problem *problem)
{
    *problem = (struct demo_problem){
        .title = "Covariances of sensors on a vibrating string, noise I + X Y^T",
        .story =
            "Nine modes, seen by 72 sensors with noise; the best linear estimate of the modes\n"
            "   weighs the sensors by the inverse.",
        .batch = 2,
        .n = SENSES,
        .m = MODES,
        .law = modes_law,
    };
    problem->x = calloc((size_t)2 * SENSES * MODES, sizeof *problem->x);
    problem->y = calloc((size_t)2 * SENSES * MODES, sizeof *problem->y);
    problem->a0 = calloc((size_t)2 * SENSES, sizeof *problem->a0);
    if (!problem_alloc(problem) || problem->x == NULL || problem->y == NULL || problem->a0 == NULL)
        return false;
    for (int e = 0; e < 2 * SENSES * MODES; e++) {
        int day = e / (SENSES * MODES), i = e / MODES % SENSES, k = e % MODES;
        problem->x[e] = mode_variance(k, day) * mode(k, i);
        problem->y[e] = mode(k, i);
    }
    for (int e = 0; e < 2 * SENSES * SENSES; e++) {
        int i = e / SENSES, j = e / (SENSES * SENSES) * SENSES + e % SENSES;
        problem->a[e] = i == j ? noise : 0;
        for (int k = 0; k < MODES; k++)
            problem->a[e] += problem->x[i * MODES + k] * problem->y[j * MODES + k];
    }
    for (int i = 0; i < 2 * SENSES; i++)
        problem->a0[i] = noise;
    return true;
}

bool demo_problems_make(struct demo_problem *problems)
{
    memset(problems, 0, DEMO_PROBLEMS * sizeof *problems);
    return kalman_make(&problems[0]) && convection_make(&problems[1]) && beam_make(&problems[2]) &&
           wall_make(&problems[3]) && covariance_make(&problems[4]) && modes_make(&problems[5]);
}

void demo_problems_free(struct demo_problem *problems)
{
    for (int p = 0; p < DEMO_PROBLEMS; p++) {
        free(problems[p].a);
        free(problems[p].v0);
        free(problems[p].x);
        free(problems[p].y);
        free(problems[p].a0);
        problems[p] = (struct demo_problem){0};
    }
}
