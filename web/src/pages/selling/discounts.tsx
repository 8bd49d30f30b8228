import "./selling.css";
import type { DiscountCode } from "@stoa/sdk";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PlusIcon } from "../../components/icons.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Chips } from "../../components/studio/chips.tsx";
import { ProductSelect } from "../../components/studio/product-select.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { DISCOUNT_STATUS_LABELS, discountAmount, discountStatus } from "../../lib/discounts.ts";
import { formatCount } from "../../lib/format.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useNow } from "../../lib/use-now.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { DISCOUNT_STATUSES, discountCodesQuery, parseDiscountsSearch } from "../../queries/selling-lists.ts";
import { productNamesQuery } from "../../queries/studio.ts";
import { CreateDiscount, EditDiscount } from "./discount-dialog.tsx";

const route = getRouteApi("/studio-shell/studio/discounts");
const EXAMPLE = { code: "SPRING", percentOff: 25, maxRedemptions: 100 };

const NewLink = () => (
  <Link
    to="/studio/discounts"
    search={(old: object) => ({ ...old, create: true as const })}
    className="btn primary"
  >
    <PlusIcon /> New code
  </Link>
);

export default function Discounts() {
  return (
    <SellerPage title="Discount codes" actions={<NewLink />}>
      <DiscountList />
    </SellerPage>
  );
}

function DiscountList() {
  const search = parseDiscountsSearch({ ...route.useSearch() });
  const { page, create, edit, status, product } = search;
  const navigate = route.useNavigate();
  const change = useSearchChange();
  const [deleted, setDeleted] = useState<DiscountCode | null>(null);
  const result = useQuery({ ...discountCodesQuery(search), placeholderData: keepPreviousData });
  const close = () =>
    void navigate({ search: (old) => ({ ...old, create: undefined, edit: undefined }), replace: true });
  const isFiltered = (status ?? product) !== undefined;
  return (
    <>
      <search className="row wrap studio-filters">
        <Chips
          label="Status"
          name="status"
          value={status}
          options={[
            [undefined, "All"],
            ...DISCOUNT_STATUSES.map((each) => [each, DISCOUNT_STATUS_LABELS[each]] as const),
          ]}
        />
        <ProductSelect value={product} onChange={(value) => change({ product: value })} />
      </search>
      <StudioList
        result={result}
        page={page}
        noun={["code", "codes"]}
        code={{
          curl: curlOf("POST", "/discount-codes", EXAMPLE),
          sdk: `await stoa.discountCodes.create(${JSON.stringify(EXAMPLE)});`,
        }}
        empty={
          isFiltered ? (
            <EmptyState title="No such codes">None of your codes matches these filters.</EmptyState>
          ) : (
            <EmptyState title="No discount codes yet" curl={curlOf("POST", "/discount-codes", EXAMPLE)}>
              A code takes a part off the price of one or all of your products, also all of it. You can limit
              how often and how long it works.
            </EmptyState>
          )
        }
      >
        {(codes) => <DiscountTable codes={codes} onDelete={setDeleted} />}
      </StudioList>
      {create && <CreateDiscount onClose={close} />}
      {edit !== undefined && <EditDiscount key={edit} id={edit} onClose={close} />}
      {deleted && <DeleteDiscount code={deleted} onClose={() => setDeleted(null)} />}
    </>
  );
}

interface DiscountTableProps {
  codes: DiscountCode[];
  onDelete: (code: DiscountCode) => void;
}

const DiscountTable = ({ codes, onDelete }: DiscountTableProps) => (
  <table>
    <thead>
      <tr>
        <th>Code</th>
        <th>Status</th>
        <th className="r">Off</th>
        <th>For</th>
        <th className="r">Used</th>
        <th className="r">Ends</th>
        <th>
          <span className="hidden">Actions</span>
        </th>
      </tr>
    </thead>
    <tbody>
      {codes.map((code) => (
        <DiscountRow key={code.id} code={code} onDelete={onDelete} />
      ))}
    </tbody>
  </table>
);

function DiscountRow({ code, onDelete }: { code: DiscountCode; onDelete: (code: DiscountCode) => void }) {
  const { data: products } = useQuery(productNamesQuery);
  const navigate = route.useNavigate();
  const now = useNow();
  const [tone, label] = discountStatus(code, now);
  const product = products?.data.find(({ id }) => id === code.productId);
  return (
    <tr>
      <td className="name">
        <Link
          to="/studio/discounts"
          search={(old: object) => ({ ...old, edit: code.id })}
          className="studio-row-link m mono"
          data-row
        >
          {code.code}
        </Link>
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td className="r m">{discountAmount(code)}</td>
      <td className="soft" dir="auto">
        {code.productId === null ? "all products" : (product?.title ?? "one product")}
      </td>
      <td className="r" data-label="Used">
        {formatCount(code.redemptions)}
        {code.maxRedemptions !== null && <span className="soft"> of {formatCount(code.maxRedemptions)}</span>}
      </td>
      <td className="r soft" data-label="Ends">
        {code.endsAt === null ? "never" : <Time iso={code.endsAt} />}
      </td>
      <td className="r menu">
        <RowMenu
          label={`More for ${code.code}`}
          actions={[
            {
              label: "Change",
              onSelect: () => void navigate({ search: (old) => ({ ...old, edit: code.id }) }),
            },
            { label: "Delete", isDestructive: true, onSelect: () => onDelete(code) },
          ]}
        />
      </td>
    </tr>
  );
}

function DeleteDiscount({ code, onClose }: { code: DiscountCode; onClose: () => void }) {
  const client = useQueryClient();
  const remove = useAction({
    run: async (id: string) => await stoa.discountCodes.delete(id),
    onSuccess: async () => {
      showToast(`${code.code} no longer works.`);
      await client.invalidateQueries({ queryKey: ["discount-codes"] });
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Delete ${code.code}?`}
      action={`Delete ${code.code}`}
      keep="Keep it"
      isPending={remove.isPending || remove.isSuccess}
      onConfirm={() => remove.start(code.id)}
      onClose={onClose}
    >
      <FormError error={remove.error} title="The code was not deleted" />
      <p>
        {formatCount(code.redemptions)} {code.redemptions === 1 ? "purchase" : "purchases"} made with it do
        not change. Nobody can use it again.
      </p>
    </ConfirmDialog>
  );
}
