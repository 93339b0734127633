import { create } from "@bufbuild/protobuf";
import {
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { Chains } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { QuoteEngine } from "../quotes/quote.js";
import { exists, isOpen } from "../routes/available-routes.js";
import type { Operation } from "./operation.js";
import {
  parseAmount,
  parseChain,
  parseNetwork,
  parseRpcUrls,
  parseSlippage,
  parseToken,
  required,
} from "./parameters.js";

export function createGetQuote(deps: {
  readonly chains: Chains;
  readonly settings: FeeSettingsSource;
  readonly engine: QuoteEngine;
}): Operation<GetQuoteRequest, GetQuoteResponse> {
  return async (request, context) => {
    const amountIn = parseAmount(required("amount", request.amount));
    const network = parseNetwork(request.network);
    const token = parseToken(network, required("token", request.token));
    const source = parseChain(network, "fromChain", required("fromChain", request.fromChain));
    const destination = parseChain(network, "toChain", required("toChain", request.toChain));
    const slippage = parseSlippage(request.slippage);
    const custom = parseRpcUrls(network, request.rpcUrl);
    context.note({ network: network.slug, token: token.name, route: `${source.slug}>${destination.slug}` });

    // What is refused whatever the settings say is refused without them.
    const route = { token: token.symbol, source, destination };
    const isAvailable = exists(network, route) && isOpen(route, await deps.settings.current(network.slug));
    if (!isAvailable) {
      const why = source === destination ? ": that is one chain" : "";
      const message = `${token.symbol} cannot be sent from ${source.slug} to ${destination.slug} on ${network.slug}${why}`;
      throw new ServiceError("UNSUPPORTED_ROUTE", message);
    }

    const quote = await deps.chains.use(network.slug, custom, (chains) =>
      deps.engine.quote(
        { network: network.slug, token, source, destination, amountIn, slippage },
        chains,
        context.signal,
      ),
    );
    const estimatedReceived = quote.estimatedReceived.toString();
    return create(GetQuoteResponseSchema, {
      amountIn: amountIn.toString(),
      slippage,
      amountOutMin: quote.amountOutMin.toString(),
      destinationAmountOutMin: quote.destinationAmountOutMin.toString(),
      bonderFee: quote.bonderFee.toString(),
      estimatedReceived,
      estimatedRecieved: estimatedReceived,
      deadline: BigInt(quote.deadline),
      destinationDeadline: BigInt(quote.destinationDeadline),
    });
  };
}
