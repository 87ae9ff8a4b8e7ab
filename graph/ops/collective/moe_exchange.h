// Which token goes to which rank: what the operators that dispatch tokens to experts and combine
// their results share.
//
// The first shared_expert_rank_num ranks of the group hold the shared experts, the others equal
// parts of the experts. A shared expert lives on several ranks; a token goes to the one that its
// own rank's number chooses.
//
// In both directions a rank finds the routes of its tokens in its expert_ids and tells the ranks of
// the experts how many there are. A rank that knows who has routes to which of its experts knows
// all of its expanded rows: they lie by local expert, then by rank, then by token.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_MOE_EXCHANGE_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_MOE_EXCHANGE_H_

#include <algorithm>
#include <compare>
#include <memory>
#include <string>
#include <vector>

#include "graph/ops/collective/chunked_exchange.h"
#include "graph/ops/collective/collective.h"

namespace npumesh::moe {

// The experts of a group of ranks.
struct Placement {
  int64_t ranks = 0;
  int64_t rank = 0;  // this one
  int64_t experts = 0;
  // Ids after them, which are not sent: experts that give nothing, that give the token back, or
  // alpha1 * token + alpha2 * v.
  int64_t zeros = 0, copies = 0, constants = 0;
  int64_t shared_ranks = 0, shared_experts = 0;

  int64_t ids() const { return experts + zeros + copies + constants; }
  int64_t experts_of_rank() const { return experts / (ranks - shared_ranks); }
  // Experts on a rank: at least one slot each, so that all ranks describe the same table.
  int64_t local_experts() const { return rank < shared_ranks ? 1 : experts_of_rank(); }
};

// Token `token` goes to local expert `expert` of rank `rank`, as its choice `choice`; choices from
// K on are shared experts.
struct Route {
  int32_t chunk = 0, rank = 0, expert = 0, token = 0, choice = 0;

  auto operator<=>(const Route&) const = default;
};

inline constexpr int64_t kAssist = 128;  // int32 of hand-over data for each row of the V2 operators

// What one run finds out, and the next one anew.
struct Exchange {
  // Of this rank's tokens, sorted.
  std::vector<Route> routes;
  std::vector<int64_t> counts;     // routes by chunk and rank
  std::vector<int64_t> first_row;  // expanded rows by expert, rank and chunk, and the end
  fused::RowTravel travel;
};

// A plan that brings this rank's tokens to experts, or back.
struct TokensPlan : hcom::Meeting {
  Placement placement;
  int64_t tokens = 0;
  int64_t group_tokens = 0;  // of all ranks together, at most
  int64_t k = 0, width = 0;
  int ids = -1;     // slot of expert_ids
  int active = -1;  // slot of x_active_mask; -1: all tokens are active
  // From PrepareExchange.
  int64_t chunks = 1;        // parts of the tokens, which travel one after the other
  int64_t chunk_tokens = 1;  // in each but the last
  std::unique_ptr<Exchange> exchange;
  Workspace<int64_t> told, heard;

  int64_t choices() const { return k + placement.shared_experts; }
  int64_t most_routes() const { return tokens * choices(); }
  bool IsActive(const KernelArgs& args, int64_t token) const {
    return active < 0 || static_cast<const uint8_t*>(args.in[active])[token] != 0;
  }

  // The first token of a chunk; all of them for the chunk after the last.
  int64_t FirstToken(int64_t chunk) const {
    return chunk == chunks ? tokens : std::min(chunk * chunk_tokens, tokens);
  }

  // After HearRoutes: rows in front of those of `rank`, or of a chunk of them, for local expert
  // `expert`. The rank after the last: its end.
  int64_t FirstRow(int64_t expert, int64_t rank, int64_t chunk = 0) const {
    const int64_t index = (expert * placement.ranks + rank) * chunks + chunk;
    return exchange->first_row[static_cast<size_t>(index)];
  }
  int64_t expanded_rows() const { return exchange->first_row.back(); }
  // Calls visit(rank, first, count) for expanded rows [first, first + count): the tokens of one
  // rank in a chunk for one expert, in the order in which they travel.
  template <typename Visit>
  void EachSegment(int64_t chunk, const Visit& visit) const {
    for (int64_t rank = 0; rank < placement.ranks; ++rank) {
      for (int64_t expert = 0; expert < placement.local_experts(); ++expert) {
        const int64_t first = FirstRow(expert, rank, chunk);
        const int64_t count = FirstRow(expert, rank, chunk + 1) - first;
        if (count > 0) visit(rank, first, count);
      }
    }
  }
};

// Reads and checks what the operators have in common; of the input `rows` only that it is a matrix
// of floats. `second`: the operator is not of the first version. Not collective.
void ReadTokens(const OpContext& op, std::string_view rows, bool second, Check& check,
                TokensPlan* plan);

// `row_bytes`: of a row that travels. Collective over the group when it is first asked for.
Status PrepareExchange(const OpContext& op, int64_t row_bytes, TokensPlan* plan);

// Collective over the group: finds the routes of this rank's tokens and hears those of all ranks.
// Errors: an id that is no expert, or stands twice with one token (kInvalidArgument); kPeerLost
// when another rank failed; kInvalidArgument when there are more tokens than any rank has room for,
// which every rank learns.
Status HearRoutes(const TokensPlan& plan, const KernelArgs& args);

// Lays out the travel of routed rows: to the experts, or `back` from there.
void LayOut(const TokensPlan& plan, bool back);

}  // namespace npumesh::moe

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_MOE_EXCHANGE_H_
