// The client that hey-api generates.
import { apiURL, runChecks } from "./checks.js";
import { createClient } from "./phoneproof/client/index.js";
import { type Error as ErrorAnswer, getVerificationStatus, initVerification } from "./phoneproof/index.js";

// A new code is not an error of types.
export const newCode: ErrorAnswer = { error: { code: "a_new_code", message: "new" } };

await runChecks("hey-api", (key) => {
  const client = createClient({ baseUrl: apiURL, auth: key });
  return {
    init: (body, requestId) => initVerification({ client, body, headers: requestId ? { "X-Request-Id": requestId } : {} }),
    status: (id, wait) => getVerificationStatus({ client, query: wait ? { id, wait } : { id } }),
  };
});
