import { describe, expect, it } from "vitest";
import { parseSendArguments, UsageError } from "../../../devnet/send-arguments.js";

const ARGUMENTS = ["--token", "USDT", "--from", "polygon", "--to", "arbitrum", "--amount", "25"];

describe("the arguments of devnet:send", () => {
  it("are parsed, with the amount in the token's smallest unit", () => {
    const parsed = parseSendArguments(ARGUMENTS);
    expect(parsed).toMatchObject({ from: "polygon", to: "arbitrum", amount: 25_000_000n, slippage: "0.5" });
    expect(parsed?.token.symbol).toBe("USDT");
    expect(parsed?.recipient).toBeUndefined();
  });

  it("may contain fractions, aliases, a slippage and a recipient", () => {
    const recipient = `0x${"ab".repeat(20)}`;
    const options = ["--slippage", "2", "--recipient", recipient];
    const parsed = parseSendArguments([...replaceOption("token", "weth"), ...options]);
    expect(parsed).toMatchObject({ amount: 25n * 10n ** 18n, slippage: "2", recipient });
    expect(parsed?.token.symbol).toBe("ETH");
    expect(parseSendArguments(replaceOption("amount", "0.000001"))?.amount).toBe(1n);
  });

  it("are none when help is asked for, whatever else is given", () => {
    expect(parseSendArguments(["--help"])).toBeUndefined();
    expect(parseSendArguments([...replaceOption("token", "XYZ"), "--help"])).toBeUndefined();
  });

  it.each([
    ["nothing", [], "--token is missing"],
    ["no amount", ARGUMENTS.slice(0, 6), "--amount is missing"],
    ["an unknown token", replaceOption("token", "XYZ"), "no token is called XYZ"],
    ["an unknown chain", replaceOption("to", "mars"), "no chain is called mars"],
    ["a negative amount", replaceOption("amount", "=-1"), "-1 is no amount"],
    ["an exponent", replaceOption("amount", "1e3"), "1e3 is no amount"],
    ["too many decimals", replaceOption("amount", "0.0000001"), "with at most 6 decimals"],
    ["an amount of 0", replaceOption("amount", "0.0"), "the amount is 0"],
    ["an invalid recipient", [...ARGUMENTS, "--recipient", "0x12"], "0x12 is no address"],
    ["an unknown option", [...ARGUMENTS, "--speed", "9"], "--speed"],
    ["an unexpected word", [...ARGUMENTS, "now"], "now"],
  ])("are rejected: %s", (_, argv, message) => {
    expect(() => parseSendArguments(argv)).toThrow(UsageError);
    expect(() => parseSendArguments(argv)).toThrow(message);
  });
});

function replaceOption(name: string, value: string): string[] {
  const index = ARGUMENTS.indexOf(`--${name}`);
  const words = value.startsWith("=") ? [`--${name}${value}`] : [`--${name}`, value];
  return [...ARGUMENTS.slice(0, index), ...words, ...ARGUMENTS.slice(index + 2)];
}
