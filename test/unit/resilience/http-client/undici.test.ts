import * as undici from "undici";
import { describe, expect, test } from "vitest";
import { Agent, buildConnector, request } from "../../../../src/resilience/http-client/undici.js";
import { startHttpStub } from "../../../support/stubs/http-stub.js";

describe("the parts of undici", () => {
  test("are those that its main file exports", () => {
    expect(Agent).toBe(undici.Agent);
    expect(buildConnector).toBe(undici.buildConnector);
  });

  test("send the request that undici's own function sends", async () => {
    const stub = await startHttpStub((message, response) => void response.end(`${message.method} ${message.url}`));
    const dispatcher = new Agent();
    for (const path of ["/a/b?c=d&e", "/", "", "/%20?"]) {
      const url = `${stub.url}${path}`;
      const [ours, theirs] = [
        await request(dispatcher, url, { method: "POST", body: "{}" }),
        await undici.request(url, { dispatcher, method: "POST", body: "{}" }),
      ];
      expect([ours.statusCode, await ours.body.text()]).toEqual([theirs.statusCode, await theirs.body.text()]);
    }
    await dispatcher.close();
    await stub.close();
  });

  test("reject a URL that is not HTTP", () => {
    const dispatcher = new Agent();
    for (const url of ["ftp://example.org/", "no URL"])
      expect(() => request(dispatcher, url, { method: "GET" })).toThrow(/URL/);
  });
});
