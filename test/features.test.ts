// The list of features compiles only while the capabilities of a tenant meet what each of them needs.
import { expect } from 'chai';
import { feature } from '../src/engine/provider/feature.ts';
import type { Engine } from '../src/engine/provider/provider.ts';
import type { Sessions } from '../src/engine/session/sessions.ts';
import { served } from '../src/server/features.ts';
import type { Parts } from '../src/server/parts.ts';

describe('the list of features', () => {
  it('takes a feature whose needs the capabilities meet', () => {
    served(feature<{ baseUrl: string; sessions: Pick<Sessions, 'isOpen'> }>({ name: 'right' }));
  });

  it('does not compile with a need that no capability meets', () => {
    // @ts-expect-error: no capability has that name
    served(feature<{ mailer: object }>({ name: 'wrong' }));
    // @ts-expect-error: more than the capability offers
    served(feature<{ sessions: Sessions & { listAll(): void } }>({ name: 'wrong' }));
    // @ts-expect-error: the engine calls grants with the parts that are made before it
    served(feature<unknown, { sessions: Sessions }>({ name: 'wrong' }));
  });

  it('works on names that have one meaning each: the engine repeats none of the parts', () => {
    const repeated: [keyof Engine & keyof Parts] extends [never] ? 'none' : 'some' = 'none';
    expect(repeated).to.equal('none');
  });
});
