// `organization` with client_credentials, where the client grant allows it.
import type { IncomingMessage } from 'node:http';
import { errors } from 'oidc-provider';
import type { ClientGrant, Organization } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { findOrganization, ORGANIZATION_REQUIRED } from './organization-parameter.ts';

/** The organizations of client_credentials requests. */
export interface MachineOrganizations {
  /** Remembers the `organization` that a request sent, because the engine would drop it. */
  remember(req: IncomingMessage, idOrName: string): void;
  /**
   * Checks whether a client grant may be used for the organization of a request.
   * @throws errors.InvalidRequest when there is no such organization, or one is required; errors.AccessDenied when
   *   the grant may not be used for it.
   */
  check(req: IncomingMessage, grant: ClientGrant, clientId: string): Promise<void>;
  /** Returns the id of the organization that a request was checked for. */
  of(req: IncomingMessage | undefined): string | undefined;
}

/** Makes the checks for one engine. */
export function machineOrganizations(config: Config): MachineOrganizations {
  const requested = new WeakMap<IncomingMessage, string>();
  const checked = new WeakMap<IncomingMessage, string>();
  return {
    remember: (req, idOrName) => void requested.set(req, idOrName),
    check: async (req, grant, clientId) => {
      const usage = grant.organization_usage ?? 'deny';
      // A grant that allows no organizations is for none, whatever the application's default organization is.
      const client = usage === 'deny' ? undefined : await config.client(clientId);
      const idOrName = requested.get(req) ?? client?.default_organization?.organization_id;
      if (idOrName === undefined) {
        if (usage === 'require') throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
        return;
      }
      const found = await findOrganization(config, idOrName);
      if (usage === 'deny' || !mayUse(found, grant)) {
        throw new errors.AccessDenied(
          `Client is not authorized to access "${grant.audience}" for the ${found.id} organization`,
        );
      }
      checked.set(req, found.id);
    },
    of: (req) => (req === undefined ? undefined : checked.get(req)),
  };
}

/** Whether a client grant may be used for an organization: for any, or because the organization has it. */
function mayUse({ client_grants }: Organization, grant: ClientGrant): boolean {
  if (grant.allow_any_organization === true) return true;
  return Array.isArray(client_grants) && client_grants.includes(grant.id);
}
