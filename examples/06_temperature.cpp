// The temperature of a softmax: softmax(scores / T). A low one makes it choose, a high one makes it indifferent.
//
// The first article's experiment, for T = 0.1, 1 and 10 on the same 5 x 5 scores. With a file name, 06_temperature
// pictures.svg, the heat maps are written there as well.
//
// Output:
//   T = 0.1   the largest weight of a row is 0.937 on average
//   T = 1     the largest weight of a row is 0.459 on average
//   T = 10    the largest weight of a row is 0.223 on average
//
//   softmax(scores / T)
//
//      T = 0.1     T = 1       T = 10
//      k k k k k   k k k k k   k k k k k
//      0 1 2 3 4   0 1 2 3 4   0 1 2 3 4
//   q0       @@        ..**..  ....::::::
//   q1       @@    ..    **..  ::....::::
//   q2     ::  ##  ....::  --  ....::..::
//   q3     @@      ..::--  ::  ..::::..::
//   q4       @@      ..::--..  ....::::::
//
//   0 [  ..::--==++**##%%@@] 1
#include <cstdio>
#include <fstream>

#include "tensor/ops.h"
#include "train/plot.h"

using namespace heed;

int main(int argc, char** argv) {
  Random random(1);
  const Tensor scores = randn({5, 5}, random);

  train::HeatMap map{"softmax(scores / T)", {"q0", "q1", "q2", "q3", "q4"}, {"k0", "k1", "k2", "k3", "k4"}, {}};
  for (const double T : {0.1, 1.0, 10.0}) {
    const Tensor weights = softmax(scores / T);  // (5, 5), each row sums to 1
    const Tensor largest = max(weights, {1});
    char title[32];
    std::snprintf(title, sizeof title, "T = %g", T);
    std::printf("%-8s  the largest weight of a row is %.3f on average\n", title, mean(largest).item());
    map.panels.push_back({title, weights.to_vector<float>()});
  }
  std::printf("\n%s", heat_map_text(map, false).c_str());

  if (argc > 1) {
    std::ofstream file(argv[1]);
    file << heat_map_svg(map);
    if (!file.flush()) return std::fprintf(stderr, "cannot write %s\n", argv[1]), 1;
    std::printf("\nwritten to %s\n", argv[1]);
  }
}
