// The list of features compiles only while the capabilities of a tenant meet what each of them needs, and their limits and log
// events only where they are declared.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { RateLimits } from '../src/capabilities/protection/rate-limit.ts';
import { feature } from '../src/engine/provider/feature.ts';
import type { Engine } from '../src/engine/provider/provider.ts';
import type { Sessions } from '../src/engine/session/sessions.ts';
import {
  databaseEvents,
  databaseLimits,
} from '../src/features/connections/database/base/database-declaration.ts';
import { oauthShape } from '../src/http/errors.ts';
import { limitsOf } from '../src/http/limits.ts';
import { eventTypesOf } from '../src/records/base/log-events.ts';
import { collected, DECLARATIONS, EVENTS, LIMITS, served } from '../src/server/features.ts';
import type { Parts } from '../src/server/parts.ts';
import type { Events } from '../src/tenant/events.ts';

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

describe('limits and log events', () => {
  it('do not compile where nobody declares them', () => {
    const taken = (limits: RateLimits) => [
      limits.spend(databaseLimits.lockNotice, ''),
      // @ts-expect-error: a name that nobody declares
      limits.spend(databaseLimits.forgotten, ''),
      // @ts-expect-error: the name of a declared limit, which is not the limit
      limits.spend('lockNotice', ''),
      // @ts-expect-error: numbers without a declaration
      limits.spend({ name: 'forgotten', capacity: 1, perMinute: 1, per: 'user', where: '' }, ''),
    ];
    const rules = { cors: 'none', errors: oauthShape, handle: () => undefined } as const;
    const routes = () =>
      served(
        feature<object>({
          name: 'wrong',
          routes: {
            // @ts-expect-error: a route whose limit nobody declares
            'GET /one': { ...rules, limit: 'forgotten' },
            // @ts-expect-error: the same for a further limit
            'GET /two': { ...rules, limit: 'unlimited', furtherLimits: ['forgotten'] },
          },
        }),
      );
    const recorded = (events: Events) => {
      events.record({ type: databaseEvents.fu });
      // @ts-expect-error: a code that nobody declares
      events.record({ type: databaseEvents.forgotten });
      // @ts-expect-error: a declared code, which is not the type of event
      events.record({ type: 'fu' });
      // @ts-expect-error: a type that nobody declares
      events.record({ type: { code: 'forgotten', meaning: '', bounds: 'attempts' } });
    };
    expect([taken, routes, recorded]).to.have.length(3);
  });

  it('are refused at the start if two parts declare one name', () => {
    const limits = limitsOf({ lockNotice: { capacity: 1, perMinute: 1, per: 'user', where: '' } });
    expect(() => collected([...DECLARATIONS, { limits }], 'limits')).to.throw('lockNotice is declared twice');
    const events = eventTypesOf({ fu: 'A second meaning.' });
    expect(() => collected([...DECLARATIONS, { events }], 'events')).to.throw('fu is declared twice');
  });

  it('are listed by the parts that declare them: all of them are known in the tenant file, the documents and the log', () => {
    const folder = new URL('../src/', import.meta.url);
    const declared = (maker: string) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .flatMap((file) => [
          ...readFileSync(new URL(file, folder), 'utf8').matchAll(
            new RegExp(`= ${maker}\\(\\{(.*?)^\\}\\);`, 'gms'),
          ),
        ])
        .flatMap(([, members = '']) => [...members.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name));
    expect(declared('limitsOf')).to.have.members(Object.keys(LIMITS));
    expect(declared('eventTypesOf')).to.have.members(Object.keys(EVENTS));
  });
});
