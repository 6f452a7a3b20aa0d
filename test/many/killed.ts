// Processes and databases that are killed while users sign up and refresh: everything that was answered must be there.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { spaTokens, token, USER } from '../support/flows.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { type Processes, startProcesses } from './processes.ts';
import { tenant as base } from './races.ts';

const COUNT = 3;
const CLIENTS = 4;
const tenant = { ...base, ...UNLIMITED };

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Node.js leaves a connection open that was being passed to a process when it was killed; it is never answered. */
const ANSWERED = 30_000;

/** Returns a promise's result, or fails if it takes too long. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('there was no answer')), ANSWERED);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Users who sign up, and applications that refresh, repeatedly. */
function users({ server }: Processes) {
  /** The addresses whose sign-up was answered. */
  const signedUp: string[] = [];
  /** The refresh tokens that were returned and not used yet. */
  const tokens: string[] = [];
  let isOver = false;
  let failed = 0;
  const signUp = async (client: number) => {
    for (let i = 0; !isOver; i++) {
      const email = `client-${client}-${i}@example.test`;
      const json = { client_id: 'web', connection: 'users', email, password: USER.password };
      const asked = createAgent(server).request('/dbconnections/signup', { json });
      const answer = await inTime(asked).catch(() => undefined);
      if (answer?.status === 200) signedUp.push(email);
      else failed++;
      await pause(answer?.status === 200 ? 5 : 50);
    }
  };
  const refresh = async () => {
    let current: string | undefined;
    while (!isOver) {
      try {
        if (current === undefined) {
          const fresh = await inTime(
            spaTokens(createAgent(server), server, { scope: 'openid offline_access' }),
          );
          current = String(fresh.refresh_token);
          continue;
        }
        const used: string = current;
        // Until there is an answer it is unknown whether the token was used.
        current = undefined;
        const fields = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: used };
        const answer = await inTime(token(createAgent(server), fields));
        if (answer.status === 200) current = String(answer.json().refresh_token);
        else failed++;
      } catch {
        failed++;
      }
      await pause(5);
    }
    if (current !== undefined) tokens.push(current);
  };
  const all = Promise.all([...Array.from({ length: CLIENTS }, (_, i) => signUp(i)), refresh(), refresh()]);
  return {
    signedUp,
    tokens,
    failed: () => failed,
    end: async () => {
      isOver = true;
      await all;
    },
  };
}

async function until(is: () => boolean | Promise<boolean>, seconds = 120): Promise<void> {
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    if (await is()) return;
    await pause(50);
  }
  throw new Error('it did not come to pass');
}

/** Checks that everything that was answered exists. @throws AssertionError naming what is missing. */
async function expectAll(
  processes: Processes,
  work: ReturnType<typeof users>,
  isPatient: boolean,
): Promise<void> {
  const { server, cluster, mail } = processes;
  const isReady = async () =>
    (
      await createAgent(server)
        .get('/readyz')
        .catch(() => undefined)
    )?.status === 200;
  await until(isReady);
  const { rows } = await cluster.query(`SELECT data ->> 'email' AS email FROM users`);
  const there = new Set(rows.map(({ email }) => email));
  expect(
    work.signedUp.filter((email) => !there.has(email)),
    'lost users',
  ).to.deep.equal([]);
  for (const refresh_token of work.tokens) {
    const answer = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: 'spa',
      refresh_token,
    });
    expect(answer.status, answer.text).to.equal(200);
  }
  const sample = work.signedUp.at(-1);
  const fields = {
    grant_type: 'password',
    client_id: 'web',
    client_secret: 'web-secret',
    password: USER.password,
  };
  expect((await token(createAgent(server), { ...fields, username: sample })).status).to.equal(200);
  // Each sign-up was promised an e-mail. A delivery held by a killed process is free after a minute and a quarter, or
  // now.
  if (!isPatient) await processes.freeDeliveries();
  const missing = () => {
    const told = new Set(mail.recipients);
    return work.signedUp.filter((email) => !told.has(email));
  };
  await until(() => missing().length === 0, 150).catch(() => undefined);
  expect(missing(), 'lost mails').to.deep.equal([]);
  const ids = new Map(mail.messages.map(({ messageId, to }) => [messageId, to?.[0]?.address]));
  const verifications = mail.messages.map(({ to }) => to?.[0]?.address);
  // A repeated message has the same id, so there is one id for each recipient.
  expect(ids.size).to.equal(new Set(verifications).size);
}

interface Killed {
  /** How often a process is killed. */
  kills: number;
  /** How often the database is killed. */
  crashes: number;
  /** Waits until what a killed process held expires by itself. */
  isPatient?: boolean;
}

/** Declares the tests. */
export function killedUnderLoad({ kills, crashes, isPatient = false }: Killed): void {
  let processes: Processes;
  let work: ReturnType<typeof users> | undefined;
  before(async () => {
    processes = await startProcesses(COUNT, tenant, true);
  });
  // Otherwise the traffic of a failed test would never end.
  afterEach(() => work?.end());
  after(() => processes?.stop());

  // Runs first, while all processes serve: a process that is still starting ends with the database and is replaced.
  it(`lose nothing that was answered and end no process when the database is killed ${crashes} times`, async () => {
    await until(() => processes.workers().length === COUNT);
    const before = processes.workers();
    const load = users(processes);
    work = load;
    for (let i = 0; i < crashes; i++) {
      const had = load.signedUp.length;
      await until(() => load.signedUp.length > had + 10);
      await processes.cluster.restart('kill');
    }
    const had = load.signedUp.length;
    await until(() => load.signedUp.length > had + 10);
    await load.end();
    await expectAll(processes, load, isPatient);
    expect(processes.workers()).to.deep.equal(before);
  });

  it(`lose nothing that was answered when a process is killed ${kills} times`, async () => {
    const load = users(processes);
    work = load;
    await until(() => load.signedUp.length > 20);
    for (let i = 0; i < kills; i++) {
      const [first, ...others] = processes.workers();
      const victim = [first, ...others][i % (others.length + 1)];
      if (victim !== undefined) process.kill(victim, 'SIGKILL');
      const had = load.signedUp.length;
      // A process that ends repeatedly is replaced after half a minute, while the others go on serving.
      await until(() => load.signedUp.length > had + 5 && processes.workers().length >= 2, 360);
    }
    await load.end();
    await expectAll(processes, load, isPatient);
  });
}
