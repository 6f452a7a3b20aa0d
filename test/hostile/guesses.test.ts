// Concurrent requests and guesses of codes for one address, in an order that a seed decides.
import { expect } from 'chai';
import {
  type Challenges,
  createChallenges,
  type IssuedChallenge,
} from '../../src/capabilities/protection/challenges.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { tenant } from '../support/flows.ts';
import { seeded } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';

const PURPOSE = 'guesses';
const ROUNDS = 40;

describe('codes that many guess at once', () => {
  let server: TestServer;
  let challenges: Challenges;
  before(async () => {
    server = await startServer({ tenant });
    challenges = createChallenges({ store: server.store, clock: Date.now, random: systemRandom });
  });
  after(() => server.stop());

  const keysOf = (name: string) => [`address:${name}`];
  const ask = (subject: string, name: string) =>
    challenges.issueCode({ purpose: PURPOSE, subject, askers: keysOf(name), digits: 6, ttlSeconds: 600 });
  const guess = (subject: string, name: string, code: string, known?: string) =>
    challenges.try(PURPOSE, subject, code, { spend: true, askers: keysOf(name), callerKey: known });
  const wrongTries = async () => {
    const { records } = await server.store.collection('challenges').list({ limit: 10_000 });
    return records.filter(({ purpose }) => purpose === PURPOSE).map(({ wrong = {} }) => Object.values(wrong));
  };

  for (const seed of [1, 2, 3]) {
    it(`work for their owner, and each takes at most three guesses (seed ${seed})`, async () => {
      const random = seeded(seed);
      const upTo = (most: number) => Math.floor(random() * most);
      for (let round = 0; round < ROUNDS; round++) {
        const subject = `person-${seed}-${round}`;
        const issued: IssuedChallenge[] = [await ask(subject, 'owner')];
        const isTaken = (code: string) => issued.some(({ secret }) => secret === code);
        const wrong = (): string => {
          const code = String(upTo(1_000_000)).padStart(6, '0');
          return isTaken(code) ? wrong() : code;
        };
        const strangers = Array.from({ length: 5 + upTo(20) }, async (_, i) => {
          for (let turns = upTo(5); turns > 0; turns--) await Promise.resolve();
          if (random() < 0.2) issued.push(await ask(subject, `stranger-${i}`));
          return guess(
            subject,
            `stranger-${upTo(8)}`,
            wrong(),
            random() < 0.2 ? `room-${upTo(3)}` : undefined,
          );
        });
        const own = Array.from({ length: upTo(3) }, () => guess(subject, 'owner', wrong()));
        const met = await Promise.all([...strangers, ...own]);
        expect(met.every((one) => one === undefined)).to.equal(true);
        for (const tries of await wrongTries()) expect(Math.max(0, ...tries)).to.be.at.most(3);
        const races = Array.from({ length: 3 }, () => guess(subject, 'owner', issued[0]?.secret ?? ''));
        const used = (await Promise.all(races)).filter((one) => one !== undefined);
        expect(used, `round ${round}`).to.have.length(1);
        for (const { secret } of issued) expect(await guess(subject, 'late', secret)).to.equal(undefined);
      }
    });
  }
});
