//     cc -DEAGER_STATIC -I. examples/01_slope.c -lm -o slope && ./slope
//
// What a gradient is: a slope. Nudge x a little; how much does y move, per unit of nudge? This file finds the slope of
// one function in two ways, by nudging and by rules. All of eager.h is the second way, for functions too long for
// paper.
#include <math.h>
#include <stdio.h>

static double f(double x) { return sin(x * x); }

// By nudging: works for any f, but each input costs two more runs of f, and the answer is never quite right.
static double slope_by_nudging(double x, double h) { return (f(x + h) - f(x - h)) / (2 * h); }

// By rules: f is sin after square. Each step multiplies the nudge by its own slope, so the slopes multiply.
// This is the chain rule, and there is no other idea in automatic differentiation.
static double slope_by_rules(double x) {
    double u = x * x;               // forward: keep what the rules below will need
    double slope_of_sin = cos(u);   // y = sin(u) moves cos(u) times as far as u
    double slope_of_square = 2 * x; // u = x * x moves 2x times as far as x
    return slope_of_sin * slope_of_square;
}

int main(void) {
    double x = 1.5, exact = slope_by_rules(x);
    printf("f(x) = sin(x * x) at x = %.1f\n", x);
    printf("slope by rules: %.9f\n\n", exact);

    printf("nudge h    slope by nudging    error\n");
    for (int k = 1; k <= 13; k += 2) {
        double h = pow(10, -k), slope = slope_by_nudging(x, h);
        printf("1e-%02d      %12.9f     %9.1e\n", k, slope, fabs(slope - exact));
    }
    printf("\nA big nudge leaves the straight part of the curve; a tiny one drowns in rounding.\n");

    // What slopes are for: walk downhill, each step against the slope, and you find a place where f is lowest.
    for (int step = 0; step < 40; step++) x -= 0.05 * slope_by_rules(x);
    printf("\nAfter 40 steps downhill: x = %.4f, f(x) = %.4f, slope %.4f\n", x, f(x), slope_by_rules(x));
}
