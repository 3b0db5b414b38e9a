// SPDX-License-Identifier: Apache-2.0
// Forgets the answers of nodes that changed.
#include "place/search/node_answers.h"

namespace horus {

std::span<NodeAnswer> NodeAnswers::Of(const Ledger& ledger, uint64_t request, uint64_t epoch) {
  std::unique_ptr<Table>* known = epoch == epoch_ ? of_request_.Find(request) : nullptr;
  if (known == nullptr) {
    if (epoch != epoch_ || bytes_ + sizeof(Table) + ledger.node_rows() * sizeof(NodeAnswer) > most_bytes_) {
      of_request_.clear();
      bytes_ = 0;
      epoch_ = epoch;
    }
    known = &of_request_.Insert(request, std::make_unique<Table>());
    bytes_ += sizeof(Table);
  }
  Table& table = **known;
  if (table.generation == ledger.generation() && table.seen >= ledger.log_begin()) {
    for (uint64_t i = table.seen; i < ledger.log_end(); ++i) table.answers[ledger.touched(i).node_row].known = false;
  } else {
    bytes_ += (ledger.node_rows() - table.answers.size()) * sizeof(NodeAnswer);
    table.answers.assign(ledger.node_rows(), {});
    table.generation = ledger.generation();
  }
  table.seen = ledger.log_end();
  return table.answers;
}

}  // namespace horus
