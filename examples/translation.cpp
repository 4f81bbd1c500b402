// The whole Transformer: an encoder reads a spoken date in English or Chinese, a decoder writes its digits, and three kinds of
// attention connect them: the encoder's over the words, the decoder's over the digits written so far (masked), and the
// decoder's over the encoder's words (cross-attention), where one can see what is translated into what.
//
// It learns from 20,000 dates, with the targets shifted by one and label smoothing, and is tested on dates that it never saw.
// After 1,500 steps:
//   exact match on unseen dates: 100.0%
//   beam: 1987-03-25   log-probability -0.87
//
// Output of --quick within 5%:
//   step    0   loss 2.831
//   step   10   loss 2.011
//   step   20   loss 1.765
//   step   29   loss 1.659
//   exact match on unseen dates: 0.0%
#include <cstdio>
#include <cstring>

#include "nn/search.h"
#include "nn/transformer.h"
#include "train/dates.h"
#include "train/optimizer.h"
#include "train/plot.h"
#include "train/schedule.h"

using namespace heed;
using namespace heed::train;
struct Source { Tensor ids, lengths; };  // i32 (B, S) and (B,)
Source read(const std::vector<SpokenDate>& dates) {
  std::vector<std::vector<int32_t>> rows;
  size_t longest = 0;
  for (const SpokenDate& date : dates) longest = std::max(longest, rows.emplace_back(date_word_ids(date.words)).size());
  std::vector<int32_t> ids, lengths;
  for (auto& row : rows) {
    lengths.push_back(static_cast<int32_t>(row.size()));
    row.resize(longest);
    ids.insert(ids.end(), row.begin(), row.end());
  }
  return {indices(ids, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}), indices(lengths)};
}

nn::NextWord next_digit(nn::Transformer& model, const Variable& memory, const Tensor& lengths) {
  return [&model, memory, lengths](const Tensor& prefixes) {  // (N, T) -> (N, digits)
    const int64_t N = prefixes.size(0);  // a beam reads one sentence N times
    const Variable m = memory.size(0) == N ? memory : expand(memory, {N, memory.size(1), memory.size(2)});
    const Tensor n = lengths.size(0) == N ? lengths : lengths.expand({N}).contiguous_copy();
    return log_softmax(model.decode(prefixes, m, n).value().select(1, prefixes.size(1) - 1));
  };
}

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::vector<SpokenDate> train = spoken_dates(1, 20000, DateSplit::train), test = spoken_dates(1, 1000, DateSplit::test);
  Random random(1);
  nn::Transformer model({.source_words = static_cast<int64_t>(date_words().size()), .target_words = kDateTokens, .dim = 64, .heads = 4,
                         .layers = 2, .ffn_dim = 128, .max_length = 32}, random);
  Adam optimizer({{model.variables()}}, 0);
  const int64_t steps = quick ? 30 : 1500;
  for (int64_t step = 0; step < steps; step++) {
    std::vector<SpokenDate> dates(64);
    std::vector<std::vector<int32_t>> digits;
    for (SpokenDate& date : dates) digits.push_back(date_digit_ids((date = train[random.below(train.size())]).digits));
    const Source source = read(dates);
    const nn::ShiftedTargets target = nn::shift_targets(digits, kDateStart, kDateEnd);
    set_dropout_stream(1, static_cast<uint64_t>(step));
    const Variable logits = model.forward(source.ids, source.lengths, target.input);  // (B, T, digits)
    const Variable loss = cross_entropy(reshape(logits, {-1, kDateTokens}), target.labels.reshape({-1}), {.label_smoothing = 0.1});
    optimizer.zero_grad(), loss.backward();
    clip_grad_norm(model.variables(), 1);
    optimizer.set_lr(scheduled_lr({.kind = "one_cycle", .lr = 3e-3, .total_steps = steps}, step)), optimizer.step();
    if (step % (steps / 3) == 0 || step + 1 == steps) std::printf("step %4lld   loss %.3f\n", static_cast<long long>(step), loss.item());
  }

  model.eval();
  const NoGrad scope;
  const Source source = read(test);
  const auto written = nn::greedy_search(next_digit(model, model.encode(source.ids, source.lengths), source.lengths),
                                     static_cast<int64_t>(test.size()), {kDateStart, kDateEnd, 16});
  int right = 0;
  for (size_t i = 0; i < test.size(); i++) right += date_digits(written[i]) == test[i].digits;
  std::printf("exact match on unseen dates: %.1f%%\n", 100.0 * right / static_cast<double>(test.size()));
  if (quick) return 0;

  const SpokenDate date{forms_of_date(1987, 3, 25)[2], "1987-03-25"};
  const Source one = read({date});
  model.keep_weights(true);
  const Variable memory = model.encode(one.ids, one.lengths);
  for (const nn::Hypothesis& h : nn::beam_search(next_digit(model, memory, one.lengths), 3, {kDateStart, kDateEnd, 16})) {
    std::printf("beam: %s   log-probability %.2f\n", date_digits(h.words).c_str(), h.log_probability);
  }
  model.decode(nn::shift_targets({date_digit_ids(date.digits)}, kDateStart, kDateEnd).input, memory, one.lengths);
  const std::vector<std::string> out = {"<s>", "1", "9", "8", "7", "-", "0", "3", "-", "2", "5"};
  const auto draw = [](const char* title, const Tensor& weights, const std::vector<std::string>& rows, const std::vector<std::string>& columns) {
    std::printf("\n%s", heat_map_text({title, rows, columns, {{"", mean(weights.select(0, 0), {0}).to_vector<float>()}}}, false, 60).c_str());
  };
  draw("encoder, the words among themselves", model.encoder.weights()[1], date.words, date.words);
  draw("decoder, masked: digits written so far", model.decoder.self_weights()[1], out, out);
  draw("cross: where each digit is read", model.decoder.cross_weights()[1], out, date.words);
}
