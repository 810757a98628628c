// The families of functions that speed fuzzing draws from: each adds inputs, calls and outputs.
#pragma once

#include "tests/bench/speed_builder.h"

namespace bench {

// speed_rows.cpp: what goes along axes
void draw_norm(Builder& b);
void draw_norm_gradient(Builder& b);
void draw_softmax(Builder& b);
void draw_softmax_gradient(Builder& b);
void draw_loss(Builder& b);
void draw_loss_gradient(Builder& b);
void draw_reduction(Builder& b);
void draw_statistics(Builder& b);
void draw_argmax(Builder& b);
void draw_scan(Builder& b);

// speed_elements.cpp: what goes element by element, and steps of optimisers
void draw_activation(Builder& b);
void draw_activation_gradient(Builder& b);
void draw_chain(Builder& b);
void draw_quantise(Builder& b);
void draw_dequantise(Builder& b);
void draw_image(Builder& b);
void draw_rotary(Builder& b);
void draw_optimiser(Builder& b);

// speed_places.cpp: where elements go
void draw_layout(Builder& b);
void draw_join(Builder& b);
void draw_mask(Builder& b);
void draw_pooling(Builder& b);
void draw_window(Builder& b);
void draw_embedding(Builder& b);
void draw_embedding_gradient(Builder& b);

// speed_products.cpp: matrices
void draw_thin_product(Builder& b);
void draw_batched_product(Builder& b);
void draw_prologue_product(Builder& b);
void draw_epilogue_product(Builder& b);

// {free, C}, {free, S, C}, {free, heads, S, S} or {free, heads, S, D} that hold the draw's
// bytes.
tiny_compile::Sizes rows_of(Builder& b, Dim width, double bytes_an_element);
// {free, C, H, W}
tiny_compile::Sizes images_of(Builder& b, double bytes_an_element);
double width_of(tiny_compile::DType dtype);  // bytes of an element

}  // namespace bench
