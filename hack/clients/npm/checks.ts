// The checks of every TypeScript client; hack/clients/go/main.go does the same. It prints PASS or FAIL for each.

// Started, State and Failure are what the checks read of an answer. That generated types fit them is checked by tsc.
interface Started { requestId: string; waLink?: string; tgLink?: string }
interface State {
  status: "PENDING" | "VERIFIED" | "EXPIRED";
  phoneNumber: string;
  reference?: string;
  metadata?: Record<string, string>;
}
interface Failure { error: { code: string; message: string; field?: string } }

interface Answer<Body> { data?: Body; error?: Failure; response?: Response }

export interface Body {
  phoneNumber: string;
  subject?: string;
  method?: "TELEGRAM" | null;
  reference?: string | null;
  metadata?: Record<string, string> | null;
  locale?: string | null;
}

export interface Client {
  init(body: Body, requestId?: string): Promise<Answer<Started>>;
  status(id: string, wait?: string): Promise<Answer<State>>;
}

// phone is the number of a user whom the simulator knows from the start.
const phone = "+4915112345678";
const subject = "user-1";

const apiKey = environment("API_KEY");
export const apiURL = environment("API_URL");
const simulatorURL = environment("SIMULATOR_URL");

function environment(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function expect(condition: boolean, got: unknown): asserts condition {
  if (!condition) throw new Error(`answered ${JSON.stringify(got)}`);
}

// simulate has the simulated user do something.
async function simulate(action: string, body: Record<string, string>): Promise<void> {
  const response = await fetch(`${simulatorURL}/sim/users/${phone}/${action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  expect(response.status === 202, await response.json());
}

// verify starts a verification, acts as its user, and waits until it is VERIFIED.
async function verify(client: Client, method?: "TELEGRAM"): Promise<void> {
  const started = await client.init(method ? { phoneNumber: phone, subject, method } : { phoneNumber: phone, subject });
  const link = method ? started.data?.tgLink : started.data?.waLink;
  expect(started.data !== undefined && link !== undefined, started.error ?? started.data);
  const id = started.data.requestId;
  const before = await client.status(id);
  expect(before.data?.status === "PENDING", before.error ?? before.data);
  await simulate("send", { link });
  if (method) await simulate("share-contact", { wait: "20s" });
  const after = await client.status(id, "20s");
  expect(after.data?.status === "VERIFIED" && after.data.phoneNumber === phone, after.error ?? after.data);
}

// checkOwnData sends data of the client's own, a number as users paste it, and null for no method.
async function checkOwnData(client: Client): Promise<void> {
  const metadata = { campaign: "spring", cart: "3" };
  const started = await client.init({
    phoneNumber: "\u202a+49\u00a0151\u201112345678\u202c", subject, method: null, reference: "order-7", metadata, locale: "es",
  });
  expect(started.data !== undefined, started.error);
  const { data, error } = await client.status(started.data.requestId);
  expect(data?.phoneNumber === phone && data.reference === "order-7" && JSON.stringify(data.metadata) === JSON.stringify(metadata), error ?? data);
}

async function checkHeaders(client: Client): Promise<void> {
  const { response } = await client.init({ phoneNumber: phone, subject }, "check-1");
  expect(response?.headers.get("X-Request-Id") === "check-1", response?.status);
  for (const name of ["PhoneProof-Simulated", "RateLimit", "RateLimit-Policy"]) {
    expect(response.headers.has(name), `no header ${name}`);
  }
}

async function expectFailure(answer: Promise<Answer<unknown>>, status: number, code: string, field?: string): Promise<void> {
  const { data, error, response } = await answer;
  expect(response?.status === status && error?.error.code === code && error.error.field === field, error ?? data);
}

// runChecks runs all checks with clients that connect makes for an API key.
export async function runChecks(tool: string, connect: (key: string) => Client): Promise<void> {
  const client = connect(apiKey);
  const stranger = connect("a-key-that-no-project-has-0123456789");
  const checks: Record<string, () => Promise<void>> = {
    "init without method, PENDING, send, VERIFIED": () => verify(client),
    "init with TELEGRAM, PENDING, send and share, VERIFIED": () => verify(client, "TELEGRAM"),
    "reference and metadata come back": () => checkOwnData(client),
    "headers of an answer": () => checkHeaders(client),
    "400 with code and field": () => expectFailure(client.init({ phoneNumber: "+49", subject }), 400, "invalid_phone_number", "phoneNumber"),
    "401 with code": () => expectFailure(stranger.init({ phoneNumber: phone, subject }), 401, "unknown_api_key"),
    "404 with code": () => expectFailure(client.status("unknown"), 404, "request_not_found"),
  };
  for (const [name, run] of Object.entries(checks)) {
    try {
      await run();
      console.log(`PASS ${tool}: ${name}`);
    } catch (err) {
      console.log(`FAIL ${tool}: ${name}: ${err}`);
    }
  }
}
