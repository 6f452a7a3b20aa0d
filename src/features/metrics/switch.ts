// Switches metrics on. Their library is loaded only then.
import { signsSince } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { measuredStore } from '../../store/instrumented.ts';
import { listAll } from '../../store/list-all.ts';
import type { Hasher } from '../../users/hashing.ts';
import type { Metrics } from './registry.ts';

interface Measured {
  store: Store;
  hasher: Hasher;
  /** The wall clock, which keys are dated by. */
  clock: Clock;
  version: string;
}

/** @returns the metrics, and the store to use in place of the given one. */
export async function switchMetricsOn({
  store,
  hasher,
  clock,
  version,
}: Measured): Promise<{ metrics: Metrics; store: Store }> {
  const { createMetrics } = await import('./registry.ts');
  const metrics = createMetrics(version);
  hasher.measure?.(metrics.measures);
  metrics.read({
    hashQueue: () => hasher.waiting?.() ?? 0,
    deliveries: () => store.collection('deliveries').count(),
    failingStreams: async () => {
      const failing = (await listAll(store.collection('logStreamPositions'))).filter(
        ({ failures }) => failures > 0,
      );
      const streams = await Promise.all(failing.map(({ id }) => store.collection('documents').get(id)));
      return streams.filter((stream) => stream !== undefined && stream.body.status !== 'paused').length;
    },
    signingKeys: async () => {
      const keys = await listAll(store.collection('signingKeys'));
      return keys
        .filter(({ state }) => state === 'current')
        .map((key) => ({ alg: String(key.jwk.alg), age: epochSeconds(clock) - signsSince(key) }));
    },
  });
  return { metrics, store: measuredStore(store, metrics.measures) };
}
