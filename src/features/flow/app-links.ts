// The documents by which phones know the tenant's own apps: Apple's associated domains and Android's Digital Asset Links. With
// them an app may have an https callback on our host, which no other app can take (RFC 8252 §7.2), and passkeys of our host.
import type { Context } from 'koa';
import { oauthShape } from '../../http/errors.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import type { Client } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';

export interface AppLinksDependencies {
  config: Config;
}

const appDocument = {
  limit: 'discovery',
  cors: 'none',
  errors: oauthShape,
} as const;

const association = {
  ...appDocument,
  summary: 'The iOS apps that may open links of this host and use its passkeys',
  answers: { 200: 'The apps, as Apple defines it' },
  handle: async (deps: AppLinksDependencies, ctx: Context) =>
    sendDocument(ctx, appleAssociation(await ownApps(deps))),
} as const;

/** The documents, at the paths where Apple and Android look. */
export const appLinkRoutes: RouteDeclarations<AppLinksDependencies> = {
  'GET|HEAD /apple-app-site-association': association,
  'GET|HEAD /.well-known/apple-app-site-association': association,
  'GET|HEAD /.well-known/assetlinks.json': {
    ...appDocument,
    summary: 'The Android apps that may open links of this host and use its passkeys',
    answers: { 200: 'The apps, as Digital Asset Links' },
    handle: async (deps, ctx) => sendDocument(ctx, assetLinks(await ownApps(deps))),
  },
};

/** Returns the applications whose apps belong to the tenant. A third party's app would get passkeys of our host. */
async function ownApps({ config }: AppLinksDependencies): Promise<Client[]> {
  return (await config.clients()).filter(({ is_first_party }) => is_first_party);
}

function sendDocument(ctx: Context, document: object): void {
  ctx.set('Cache-Control', 'public, max-age=300');
  ctx.type = 'json';
  ctx.body = document;
}

/** An app's callbacks are below `/ios/<bundle>/`, as its SDK makes them, and so are no links of another app. */
function appleAssociation(clients: readonly Client[]): object {
  const apps = clients.flatMap(({ mobile }) => {
    const { team_id: team, app_bundle_identifier: bundle } = mobile?.ios ?? {};
    return team && bundle ? [{ appID: `${team}.${bundle}`, paths: [`/ios/${bundle}/*`] }] : [];
  });
  return {
    applinks: { apps: [], details: apps },
    webcredentials: { apps: [...new Set(apps.map(({ appID }) => appID))] },
  };
}

function assetLinks(clients: readonly Client[]): object[] {
  return clients.flatMap(({ mobile }) => {
    const { app_package_name: name, sha256_cert_fingerprints: fingerprints } = mobile?.android ?? {};
    if (!name || !fingerprints?.length) return [];
    return [
      {
        relation: [
          'delegate_permission/common.handle_all_urls',
          'delegate_permission/common.get_login_creds',
        ],
        target: { namespace: 'android_app', package_name: name, sha256_cert_fingerprints: fingerprints },
      },
    ];
  });
}
