// Faults of development users that could not be created or could never log in.
import { lookupEmail, normalizeEmail } from '../records/email.ts';
import { MAX_PASSWORD_LENGTH, normalizePassword } from '../records/passwords.ts';
import type { TenantFile } from '../records/tenant.ts';
import { directoryOf } from './names.ts';

/** Returns a message for each fault. */
export function userFaults(file: TenantFile): string[] {
  const { users } = file;
  const taken = new Set<string>();
  const customDatabases = new Set(
    file.databases
      .filter(({ options }) => options.enabledDatabaseCustomization === true && options.import_mode !== true)
      .map(({ name }) => name),
  );
  return users.flatMap((user, index) => {
    const { email, password, username } = user;
    const faults: string[] = [];
    const directory = directoryOf(file, user);
    if (customDatabases.has(directory))
      faults.push(`connection: the users of ${directory} are kept elsewhere`);
    if (normalizeEmail(email) === undefined) faults.push(`email: ${email} is no e-mail address`);
    // Logins reject longer passwords without hashing them.
    if (Buffer.byteLength(normalizePassword(password)) > MAX_PASSWORD_LENGTH) {
      faults.push(`password: more than ${MAX_PASSWORD_LENGTH} bytes of UTF-8, which no login accepts`);
    }
    if (!password.isWellFormed()) faults.push('password: half of a surrogate pair, which no login can send');
    if (username !== undefined) {
      const name = `${username.trim().toLowerCase()} in ${directory}`;
      if (username.trim() === '') faults.push('username: must not be empty');
      // Such a username would match another user's e-mail address at login.
      if (lookupEmail(username) !== undefined) faults.push(`username: ${username} is an e-mail address`);
      if (taken.has(name)) faults.push(`username: ${name} is there twice`);
      taken.add(name);
    }
    return faults.map((fault) => `users[${index}].${fault}`);
  });
}
