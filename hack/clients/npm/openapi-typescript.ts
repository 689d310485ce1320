// The types that openapi-typescript generates, with the client that belongs to them, openapi-fetch.
import createClient from "openapi-fetch";
import { apiURL, runChecks } from "./checks.js";
import type { components, paths } from "./phoneproof.js";

// A new code is not an error of types.
export const newCode: components["schemas"]["Error"] = { error: { code: "a_new_code", message: "new" } };

await runChecks("openapi-typescript", (key) => {
  const client = createClient<paths>({ baseUrl: apiURL, headers: { Authorization: `Bearer ${key}` } });
  return {
    init: (body, requestId) =>
      client.POST("/api/verify/init", { body, params: { header: requestId ? { "X-Request-Id": requestId } : {} } }),
    status: (id, wait) => client.GET("/api/verify/status", { params: { query: wait ? { id, wait } : { id } } }),
  };
});
