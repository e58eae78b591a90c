from gibbsian.inference.elimination import Elimination as Elimination
from gibbsian.inference.engine import (
    ENGINES as ENGINES,
    Cost as Cost,
    Engine as Engine,
    ExactAnswers as ExactAnswers,
    conditional as conditional,
    exact as exact,
    is_affordable as is_affordable,
    plan_exact as plan_exact,
    predict_cost as predict_cost,
)
from gibbsian.inference.enumeration import Enumeration as Enumeration
from gibbsian.inference.factor_elimination import FactorElimination as FactorElimination
from gibbsian.inference.layer_sums import LayerSums as LayerSums
from gibbsian.inference.planar.engine import Planar as Planar
from gibbsian.inference.table_enumeration import TableEnumeration as TableEnumeration
from gibbsian.inference.upper_bounds import largest_log_weight_bound as largest_log_weight_bound
