import { describe, expect, it } from "vitest";
import { parseSendArguments, UsageError } from "../../../devnet/send-arguments.js";

const given = ["--token", "USDT", "--from", "polygon", "--to", "arbitrum", "--amount", "25"];

describe("the arguments of devnet:send", () => {
  it("are read, the amount in the token's smallest unit", () => {
    const read = parseSendArguments(given);
    expect(read).toMatchObject({ from: "polygon", to: "arbitrum", amount: 25_000_000n, slippage: "0.5" });
    expect(read?.token.symbol).toBe("USDT");
    expect(read?.recipient).toBeUndefined();
  });

  it("take fractions, aliases, a slippage and a recipient", () => {
    const recipient = `0x${"ab".repeat(20)}`;
    const more = ["--slippage", "2", "--recipient", recipient];
    const read = parseSendArguments([...replaced("token", "weth"), ...more]);
    expect(read).toMatchObject({ amount: 25n * 10n ** 18n, slippage: "2", recipient });
    expect(read?.token.symbol).toBe("ETH");
    expect(parseSendArguments(replaced("amount", "0.000001"))?.amount).toBe(1n);
  });

  it("are none when help is asked for, whatever else is given", () => {
    expect(parseSendArguments(["--help"])).toBeUndefined();
    expect(parseSendArguments([...replaced("token", "XYZ"), "--help"])).toBeUndefined();
  });

  it.each([
    ["nothing", [], "--token is missing"],
    ["no amount", given.slice(0, 6), "--amount is missing"],
    ["an unknown token", replaced("token", "XYZ"), "no token is called XYZ"],
    ["an unknown chain", replaced("to", "mars"), "no chain is called mars"],
    ["a negative amount", replaced("amount", "=-1"), "-1 is no amount"],
    ["no number", replaced("amount", "1e3"), "1e3 is no amount"],
    ["too many decimals", replaced("amount", "0.0000001"), "with at most 6 decimals"],
    ["an amount of 0", replaced("amount", "0.0"), "the amount is 0"],
    ["a wrong recipient", [...given, "--recipient", "0x12"], "0x12 is no address"],
    ["an unknown option", [...given, "--speed", "9"], "--speed"],
    ["a stray word", [...given, "now"], "now"],
  ])("are refused: %s", (_, argv, message) => {
    expect(() => parseSendArguments(argv)).toThrow(UsageError);
    expect(() => parseSendArguments(argv)).toThrow(message);
  });
});

function replaced(name: string, value: string): string[] {
  const at = given.indexOf(`--${name}`);
  const words = value.startsWith("=") ? [`--${name}${value}`] : [`--${name}`, value];
  return [...given.slice(0, at), ...words, ...given.slice(at + 2)];
}
