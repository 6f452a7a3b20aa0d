// Members that are stored encrypted are recognized by their names, and hidden on pages, from viewers, in trials and
// in the log.
import { expect } from 'chai';
import { secretsIn } from '../../src/features/console/connections/console-connection-options.ts';
import { createSecrets, shownJson } from '../../src/features/console/connections/steps.ts';
import { maskSecrets } from '../../src/features/console/resources/console-resource-secrets.ts';
import { redacted } from '../../src/features/management/call.ts';
import { withoutSecrets } from '../../src/features/management/roles/role-masks.ts';
import { collections } from '../../src/records/collections.ts';
import { SMS_PROVIDERS } from '../../src/records/connections/passwordless.ts';
import { connectionSecrets, isNamedSecret } from '../../src/records/secrets.ts';
import { MAIL_PROVIDERS } from '../../src/records/tenant/delivery.ts';
import { SINKS } from '../../src/records/tenant/log-streams.ts';

const SECRET = 'what-nobody-is-to-see';

/** Paths of encrypted members that administrators can see: `a.*.b`. */
const SEALED = (['tenant', 'clients', 'connections', 'documents'] as const).flatMap(
  (name) => collections[name].sealed ?? [],
);

/**
 * Paths whose names do not indicate a secret. The Management API never returns them, and logs their calls without the
 * body.
 */
const NAMELESS = new Set(['rulesConfigs.*.value', 'body.value', 'body.values']);

/** Returns a record with the secret at a path. */
const recordWith = (path: string): Record<string, unknown> =>
  path
    .split('.')
    .reduceRight<unknown>((inner, step) => ({ [step === '*' ? 'one' : step]: inner }), SECRET) as Record<
    string,
    unknown
  >;

describe('the names of secrets', () => {
  const named = SEALED.filter((path) => !NAMELESS.has(path));

  it('cover every encrypted member: on pages, for viewers, and in the log', () => {
    expect(named).to.include.members(['client_secret', 'options.signing_key', 'body.sink.datadogApiKey']);
    for (const path of named) {
      const record = recordWith(path);
      expect(JSON.stringify(maskSecrets(record)), `pages: ${path}`).not.to.contain(SECRET);
      expect(JSON.stringify(withoutSecrets(record)), `viewers: ${path}`).not.to.contain(SECRET);
      expect(JSON.stringify(redacted(record)), `log: ${path}`).not.to.contain(SECRET);
    }
  });

  it('are names of encrypted members, in what log streams and providers of messages need', () => {
    for (const { members } of [...SINKS, ...MAIL_PROVIDERS, ...SMS_PROVIDERS])
      for (const [name, { exposure, part }] of Object.entries(members))
        expect(
          exposure !== 'open',
          `${name} is ${exposure}: isNamedSecret (src/records/secrets.ts) must know it, unless it is open`,
        ).to.equal(isNamedSecret((name + part).split('.').at(-1) ?? ''));
  });

  it('cover objects, and lists of headers', () => {
    const all = [
      { signing_key: { key: SECRET, cert: 'of it' } },
      { decryptionKey: { key: SECRET } },
      { sink: { httpCustomHeaders: [{ header: 'Authorization', value: SECRET }] } },
      { customHeaders: { 'X-Key': SECRET } },
    ];
    for (const record of all)
      for (const shown of [maskSecrets(record), withoutSecrets(record), redacted(record)])
        expect(JSON.stringify(shown)).not.to.contain(SECRET);
  });

  it('cover the options of a connection in a trial login', () => {
    for (const path of connectionSecrets) {
      const record = recordWith(path);
      const { options } = record as { options: Record<string, unknown> };
      expect(secretsIn(options), path).to.deep.equal([SECRET]);
      const shown = shownJson({ said: `it was ${SECRET}` }, createSecrets(secretsIn(options)));
      expect(shown, path).not.to.contain(SECRET);
      const name = path.split('.')[1] ?? '';
      const isText = !path.includes('*') && path.split('.').length === 2;
      if (isText) expect(shownJson({ [name]: SECRET }, createSecrets([])), path).not.to.contain(SECRET);
    }
  });
});
