/* SPDX-License-Identifier: MIT */
/*
 * Windows begin where something was asked for and end where something was answered. A tree over
 * the ends holds what a window up to each would have, for a beginning that goes back in time: with
 * each step one grant more is in all windows that end behind it, and more ends can be reached.
 */
#include "window.h"

#include <math.h>
#include <stdlib.h>

/* Of a part of the ends: the sum of their steps, and the largest sum from its beginning to an end
 * that can be reached, which is the one at `at`. */
struct node {
    double sum;
    double best;
    size_t at;
};

struct tree {
    struct node *nodes; /* the leaves from `leaves` on */
    size_t leaves;
};

static int by_end(const void *a, const void *b)
{
    const struct grant *one = a;
    const struct grant *other = b;

    return (one->end > other->end) - (one->end < other->end);
}

static int by_begin(const void *a, const void *b)
{
    const struct grant *one = *(const struct grant *const *)a;
    const struct grant *other = *(const struct grant *const *)b;

    return (one->begin > other->begin) - (one->begin < other->begin);
}

static void renew(struct tree *tree, size_t leaf)
{
    for (size_t i = (tree->leaves + leaf) / 2; i > 0; i /= 2) {
        const struct node *left = &tree->nodes[2 * i];
        const struct node *right = &tree->nodes[2 * i + 1];
        double beyond = left->sum + right->best;

        tree->nodes[i].sum = left->sum + right->sum;
        tree->nodes[i].best = left->best >= beyond ? left->best : beyond;
        tree->nodes[i].at = left->best >= beyond ? left->at : right->at;
    }
}

static void add(struct tree *tree, size_t leaf, double cost)
{
    struct node *node = &tree->nodes[tree->leaves + leaf];

    node->sum += cost;
    if (node->best > -INFINITY)
        node->best = node->sum;
    renew(tree, leaf);
}

static void reach(struct tree *tree, size_t leaf)
{
    struct node *node = &tree->nodes[tree->leaves + leaf];

    node->best = node->sum;
    renew(tree, leaf);
}

static struct tree plant(const struct grant *grants, size_t len, double rate)
{
    struct tree tree = {.leaves = 1};

    while (tree.leaves < len)
        tree.leaves *= 2;
    tree.nodes = calloc(2 * tree.leaves, sizeof *tree.nodes);
    if (tree.nodes == NULL)
        abort();
    for (size_t i = 0; i < 2 * tree.leaves; i++)
        tree.nodes[i].best = -INFINITY;
    for (size_t i = 0; i < len; i++) {
        struct node *leaf = &tree.nodes[tree.leaves + i];

        leaf->sum = i == 0 ? 0.0 : -rate * (grants[i].end - grants[i - 1].end);
        leaf->at = i;
        renew(&tree, i);
    }
    return tree;
}

void window_fullest(struct grant *grants, size_t len, double rate, struct fullest *fullest)
{
    const struct grant **begins = calloc(len + 1, sizeof *begins);
    struct tree tree;
    size_t reached = len;

    *fullest = (struct fullest){0};
    if (begins == NULL)
        abort();
    if (len == 0) {
        free(begins);
        return;
    }
    qsort(grants, len, sizeof *grants, by_end);
    for (size_t i = 0; i < len; i++)
        begins[i] = &grants[i];
    qsort(begins, len, sizeof *begins, by_begin);
    tree = plant(grants, len, rate);
    for (size_t i = len; i-- > 0;) {
        double begin = begins[i]->begin;
        double excess;

        add(&tree, (size_t)(begins[i] - grants), begins[i]->cost);
        while (reached > 0 && grants[reached - 1].end >= begin)
            reach(&tree, --reached);
        excess = tree.nodes[1].best - rate * (grants[0].end - begin);
        if (excess <= fullest->excess)
            continue;
        fullest->excess = excess;
        fullest->begin = begin;
        fullest->length = grants[tree.nodes[1].at].end - begin;
        fullest->cost = excess + rate * fullest->length;
    }
    free(tree.nodes);
    free(begins);
}
