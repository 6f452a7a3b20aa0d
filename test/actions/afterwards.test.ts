// The queue of actions that nobody waits for.
import { expect } from 'chai';
import type { Actions } from '../../src/actions/actions.ts';
import { createAfterwards } from '../../src/actions/afterwards.ts';

const TRIGGER = 'post-user-registration';

describe('the queue of actions that nobody waits for', () => {
  /** A queue whose runs end when they are let go; `dropped` counts those that there was no room for. */
  const queue = () => {
    const gate = Promise.withResolvers<void>();
    const seen = { begun: 0, done: 0, dropped: 0 };
    const actions: Pick<Actions, 'run' | 'dropped'> = {
      dropped: () => {
        seen.dropped += 1;
      },
      run: async () => {
        seen.begun += 1;
        await gate.promise;
        seen.done += 1;
        throw new Error('what one fails with ends nobody else');
      },
    };
    return { seen, open: gate.resolve, afterwards: createAfterwards(actions) };
  };
  const event = async () => ({});

  it('has room for a thousand, of whom two run at once, and says what it drops', async () => {
    const { seen, open, afterwards } = queue();
    for (let n = 0; n < 1_003; n++) afterwards.run(TRIGGER, event, {});
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).to.deep.equal({ begun: 2, done: 0, dropped: 3 });
    open();
    await afterwards.flush(10_000);
    expect(seen).to.deep.equal({ begun: 1_000, done: 1_000, dropped: 3 });
  });

  it('is waited for at a stop, and no longer than there is time', async () => {
    const { seen, open, afterwards } = queue();
    afterwards.run(TRIGGER, event, {});
    await afterwards.flush(20);
    expect(seen.done).to.equal(0);
    open();
    await afterwards.flush(10_000);
    expect(seen.done).to.equal(1);
  });
});
