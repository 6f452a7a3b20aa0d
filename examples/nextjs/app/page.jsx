import { Account } from './account.jsx';

export default function Page() {
  return <Account />;
}
