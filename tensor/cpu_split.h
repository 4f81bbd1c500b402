// The axes of a reduction's input by what happens to them: kept (x and y have them) and reduced (x alone).
#pragma once
#include "tensor/cpu_loops.h"

namespace heed::cpu {

struct Split {
  Lines<2> kept;  // x, y
  Lines<1> reduced;
  bool along;  // a line of x becomes one number; otherwise lines of x are combined element by element

  Split(const View& y, const View& x) : Split(y, kept_part(y, x), reduced_part(y, x)) {}

 private:
  Split(const View& y, const View& x_kept, const View& x_reduced) : kept({&x_kept, &y}), reduced({&x_reduced}) {
    const bool contiguous = reduced.step()[0] <= kept.step()[0];
    const bool long_enough = reduced.length() >= 16 || kept.length() < 16;
    along = kept.numel() == 1 || (contiguous && long_enough);
  }
  static View kept_part(const View& y, View x) {
    x.shape = y.shape;
    return x;
  }
  static View reduced_part(const View& y, View x) {
    for (int i = 0; i < x.rank(); i++) {
      if (y.shape[i] == x.shape[i]) x.shape[i] = 1;
    }
    return x;
  }
};

}  // namespace heed::cpu
