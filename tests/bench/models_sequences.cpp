// Which models read sequences? Transformers as GPT-2 and as Llama have them, two recurrent ones
// and a state-space model, whose steps are unrolled as PyTorch's tracer would.
#include "tests/bench/models_rows.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
namespace nn = tc::nn;
using tc::Size, tc::Tensor;

struct GptModel {
  static constexpr const char* names[] = {""};
  nn::Gpt gpt;
  Tensor operator()(const Tensor& words) const { return nn::gpt_scores(gpt, words); }
};

Network gpt(bool small) {
  const int64_t length = small ? 6 : 64, batch = small ? 2 : 4, words = small ? 19 : 256;
  const nn::GptShape shape{words, length, small ? 1 : 2, small ? 2 : 4, small ? 8 : 128};
  return network_of("pre-norm transformer, learned positions, GELU",
                    GptModel{nn::make_gpt(shape)}, classes({batch, length}, words),
                    classes({batch, length}, words));
}

// Touvron et al. 2023 -------------------------------------------------------------------------

// Su et al. 2021: pairs of a head's halves, transposed by the place's angles.
Tensor rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const int64_t half = x.shape().back() / 2;
  const Tensor first = tc::slice(x, -1, 0, half), second = tc::slice(x, -1, half, 2 * half);
  return x * cosine + tc::cat({-second, first}, -1) * sine;
}

struct Angles {
  Tensor cosine, sine;  // [length, width of a head]
};

Angles angles_of(int64_t length, int64_t width) {
  const Tensor powers = tc::arange(width / 2).to(tc::DType::f32) * (-2.0 / width);
  const Tensor rates = tc::pow(10000.0, powers);
  const Tensor transposed = tc::outer(tc::arange(length).to(tc::DType::f32), rates);
  const Tensor both = tc::cat({transposed, transposed}, -1);
  return {tc::cos(both), tc::sin(both)};
}

struct GroupedAttention {
  static constexpr const char* names[] = {"query", "key", "value", "output", "heads", "groups"};
  nn::Linear query, key, value, output;
  int64_t heads = 1, groups = 1;  // heads / groups queries share keys and values

  Tensor operator()(const Tensor& x, const Angles& angles) const {
    const Size batch = x.size(0), length = x.size(1);
    const auto split = [&](const Tensor& y, int64_t count) {
      return tc::transpose(tc::reshape(y, {batch, length, count, -1}), 1, 2);
    };
    const auto shared = [&](const Tensor& y) {  // [B, groups, L, D] -> [B, heads, L, D]
      const Size width = y.size(3);
      const Tensor wide = tc::expand(tc::reshape(y, {batch, groups, 1, length, width}),
                                     {batch, groups, heads / groups, length, width});
      return tc::reshape(wide, {batch, heads, length, width});
    };
    const Tensor q = rotated(split(query(x), heads), angles.cosine, angles.sine);
    const Tensor k = rotated(split(key(x), groups), angles.cosine, angles.sine);
    const Tensor v = split(value(x), groups);
    const Tensor y = tc::scaled_dot_product_attention(q, shared(k), shared(v), {}, true);
    return output(tc::reshape(tc::transpose(y, 1, 2), {batch, length, -1}));
  }
};

struct LlamaBlock {
  static constexpr const char* names[] = {"norm1", "attention", "norm2", "gate", "up", "down"};
  nn::RMSNorm norm1;
  GroupedAttention attention;
  nn::RMSNorm norm2;
  nn::Linear gate, up, down;
};

struct Llama {
  static constexpr const char* names[] = {"words", "blocks", "norm", "head"};
  nn::Embedding words;
  std::vector<LlamaBlock> blocks;
  nn::RMSNorm norm;
  nn::Linear head;
  Tensor operator()(const Tensor& index) const {
    Tensor x = words(index);
    const auto& first = blocks[0].attention;
    const int64_t width = x.shape().back() / first.heads;
    const Angles angles = angles_of(index.shape()[1], width);
    for (const LlamaBlock& block : blocks) {
      x = x + block.attention(block.norm1(x), angles);
      const Tensor y = block.norm2(x);
      x = x + block.down(tc::silu(block.gate(y)) * block.up(y));
    }
    return head(norm(x));
  }
};

Network llama(bool small) {
  const int64_t width = small ? 16 : 128, heads = 4, groups = 2, words = small ? 19 : 256;
  const int64_t batch = 2, length = small ? 6 : 128, wide = small ? 24 : 352;
  const auto linear = [](int64_t in, int64_t out) {
    return nn::make_linear(in, out, {.bias = false});
  };
  Llama net{
      nn::make_embedding(words, width), {}, nn::make_rms_norm({width}), linear(width, words)};
  for (int layer = 0; layer < (small ? 1 : 2); layer++)
    net.blocks.push_back(
        {nn::make_rms_norm({width}),
         {linear(width, width), linear(width, width / heads * groups),
          linear(width, width / heads * groups), linear(width, width), heads, groups},
         nn::make_rms_norm({width}),
         linear(width, wide),
         linear(width, wide),
         linear(wide, width)});
  return network_of("grouped heads, rotary positions, RMS norm, SwiGLU", net,
                    classes({batch, length}, words), classes({batch, length}, words));
}

// Recurrent -----------------------------------------------------------------------------------

// PyTorch's: the gates' rows one behind the other, a bias for each product.
struct Recurrent {
  static constexpr const char* names[] = {"weight_input", "weight_state", "bias_input",
                                          "bias_state"};
  Tensor weight_input, weight_state, bias_input, bias_state;
};

Recurrent make_recurrent(int64_t in, int64_t width, int64_t gates) {
  return {tc::zeros({gates * width, in}), tc::zeros({gates * width, width}),
          tc::zeros({gates * width}), tc::zeros({gates * width})};
}

// Hochreiter and Schmidhuber 1997; gates in, forget, new, out.
struct Lstm {
  static constexpr const char* names[] = {"cell", "head"};
  Recurrent cell;
  nn::Linear head;
  Tensor operator()(const Tensor& x) const {
    const int64_t width = cell.weight_state.shape()[1];
    const Tensor given = tc::linear(x, cell.weight_input, cell.bias_input);
    Tensor h = tc::zeros({x.shape()[0], width}), c = h;
    std::vector<Tensor> states;
    for (int64_t t = 0; t < x.shape()[1]; t++) {
      const auto gates =
          tc::split(tc::select(given, 1, t) + tc::linear(h, cell.weight_state, cell.bias_state),
                    width, 1);
      c = tc::sigmoid(gates[1]) * c + tc::sigmoid(gates[0]) * tc::tanh(gates[2]);
      h = tc::sigmoid(gates[3]) * tc::tanh(c);
      states.push_back(h);
    }
    return head(tc::stack(states, 1));
  }
};

Network lstm(bool small) {
  const int64_t in = small ? 5 : 64, width = small ? 6 : 128, batch = small ? 2 : 8;
  const int64_t length = small ? 4 : 32, words = small ? 7 : 64;
  const Lstm net{make_recurrent(in, width, 4), nn::make_linear(width, words)};
  return network_of("LSTM, unrolled", net, floats({batch, length, in}),
                    classes({batch, length}, words));
}

// Cho et al. 2014; gates reset, update, new.
struct Gru {
  static constexpr const char* names[] = {"cell", "head"};
  Recurrent cell;
  nn::Linear head;
  Tensor operator()(const Tensor& x) const {
    const int64_t width = cell.weight_state.shape()[1];
    const Tensor given = tc::linear(x, cell.weight_input, cell.bias_input);
    Tensor h = tc::zeros({x.shape()[0], width});
    for (int64_t t = 0; t < x.shape()[1]; t++) {
      const auto from = tc::split(tc::select(given, 1, t), width, 1);
      const auto own = tc::split(tc::linear(h, cell.weight_state, cell.bias_state), width, 1);
      const Tensor update = tc::sigmoid(from[1] + own[1]);
      const Tensor made = tc::tanh(from[2] + tc::sigmoid(from[0] + own[0]) * own[2]);
      h = (1.0 - update) * made + update * h;
    }
    return head(h);
  }
};

Network gru(bool small) {
  const int64_t in = small ? 5 : 64, width = small ? 6 : 128, batch = small ? 2 : 16;
  const Gru net{make_recurrent(in, width, 3), nn::make_linear(width, 10)};
  return network_of("GRU, unrolled", net, floats({batch, small ? 4 : 24, in}),
                    classes({batch}, 10));
}

// Gu and Dao 2023: a state of each channel, whose rates the input chooses.
struct StateSpace {
  static constexpr const char* names[] = {"log_rates", "skip",  "window", "input",
                                          "chosen",    "rates", "output"};
  Tensor log_rates, skip;  // [channels, states], [channels]
  Tensor window;           // [channels, 1, 1, 4]: of the last four places
  nn::Linear input, chosen, rates, output;

  Tensor operator()(const Tensor& x) const {
    const int64_t width = skip.shape()[0], states = log_rates.shape()[1];
    const auto halves = tc::split(input(x), width, -1);
    const Tensor u = tc::silu(filtered(halves[0]));
    const Tensor step = tc::softplus(rates(u));          // [B, L, channels]
    const auto pair = tc::split(chosen(u), states, -1);  // [B, L, states] each
    const Tensor decay = tc::exp(tc::unsqueeze(step, 3) * -tc::exp(log_rates));
    const Tensor added = tc::unsqueeze(step * u, 3) * tc::unsqueeze(pair[0], 2);
    Tensor h = tc::zeros({x.shape()[0], width, states});
    std::vector<Tensor> found;
    for (int64_t t = 0; t < x.shape()[1]; t++) {
      h = tc::select(decay, 1, t) * h + tc::select(added, 1, t);
      found.push_back(tc::sum(h * tc::unsqueeze(tc::select(pair[1], 1, t), 1), {-1}));
    }
    const Tensor y = tc::stack(found, 1) + u * skip;
    return output(y * tc::silu(halves[1]));
  }

  // [B, L, channels] by the window, which sees no later place.
  Tensor filtered(const Tensor& x) const {
    const Tensor before = tc::pad(tc::transpose(x, 1, 2), {window.shape()[3] - 1, 0});
    const Tensor y = tc::conv2d(tc::unsqueeze(before, 2), window, {}, 1, 0, 1, skip.shape()[0]);
    return tc::transpose(tc::squeeze(y, 2), 1, 2);
  }
};

struct Mamba {
  static constexpr const char* names[] = {"norm", "mixer", "head"};
  nn::RMSNorm norm;
  StateSpace mixer;
  nn::Linear head;
  Tensor operator()(const Tensor& x) const { return head(x + mixer(norm(x))); }
};

Network mamba(bool small) {
  const int64_t width = small ? 6 : 64, states = small ? 3 : 8, batch = 2;
  const int64_t length = small ? 5 : 48, words = small ? 7 : 64;
  const StateSpace mixer{tc::zeros({2 * width, states}),
                         tc::zeros({2 * width}),
                         tc::zeros({2 * width, 1, 1, 4}),
                         nn::make_linear(width, 4 * width, {.bias = false}),
                         nn::make_linear(2 * width, 2 * states, {.bias = false}),
                         nn::make_linear(2 * width, 2 * width),
                         nn::make_linear(2 * width, width, {.bias = false})};
  const Mamba net{nn::make_rms_norm({width}), mixer, nn::make_linear(width, words)};
  return network_of("selective state space, unrolled", net, floats({batch, length, width}),
                    classes({batch, length}, words));
}

}  // namespace

std::vector<std::pair<std::string, NetworkMaker>> sequence_networks() {
  return {{"gpt", gpt}, {"llama", llama}, {"lstm", lstm}, {"gru", gru}, {"mamba", mamba}};
}

}  // namespace bench
